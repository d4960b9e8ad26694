{#-
  Bag equality of an incremental_ivm model and its own query over the current sources: one extra, one missing or one
  duplicated row is a failure.  `tolerance` is relative and only for float and double columns; the `where` config
  restricts both sides.
-#}
{% test equals_recompute(model, tolerance=none) %}
  {%- do dbt_ivm.ivm_require_python() -%}
  {%- if execute -%}
    {{ dbt_ivm.ivm_difference_query(graph.nodes[context.model.attached_node], tolerance, config.get('where')) }}
  {%- endif -%}
{% endtest %}


{#- Rows that the model and its query do not share; no rows mean equal. -#}
{% macro ivm_difference_query(node, tolerance=none, where=none) %}
  {%- set relation = dbt_ivm.ivm_relation_of(node) -%}
  {%- set columns = [] -%}
  {%- for column in adapter.get_columns_in_relation(relation) -%}
    {%- do columns.append([column.name, column.dtype]) -%}
  {%- endfor -%}
  {{ return(modules.ivm.bag_difference(
    modules.ivm.compiled(ref, node.unique_id), relation.render(), columns, tolerance, where
  )) }}
{% endmacro %}


{% macro ivm_relation_of(node) %}
  {{ return(api.Relation.create(database=node.database, schema=node.schema, identifier=node.alias, type='view')) }}
{% endmacro %}
