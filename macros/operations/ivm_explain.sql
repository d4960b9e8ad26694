{#- dbt run-operation ivm_explain --args '{model: m}': what the next refresh would do, and how.  Writes nothing. -#}
{% macro ivm_explain(model) %}
  {%- do dbt_ivm.ivm_require_python() -%}
  {%- if execute -%}
    {%- do print(dbt_ivm.ivm_planned('explain', model)) -%}
  {%- endif -%}
{% endmacro %}


{#- dbt run-operation ivm_dry_run --args '{model: m}': the rows the next refresh would apply.  Writes nothing. -#}
{% macro ivm_dry_run(model, limit=20) %}
  {%- do dbt_ivm.ivm_require_python() -%}
  {%- if execute -%}
    {%- set planned = dbt_ivm.ivm_planned('dry_run', model) -%}
    {%- do print('strategy: ' ~ planned.strategy ~ (' because ' ~ planned.reason if planned.reason else '')) -%}
    {%- if planned.sql is not none -%}
      {%- do print(modules.ivm.table_text(run_query('select * from (' ~ planned.sql ~ ') limit ' ~ limit))) -%}
    {%- endif -%}
  {%- endif -%}
{% endmacro %}


{% macro ivm_planned(what, name) %}
  {%- set node = modules.ivm.find_model(graph, name) -%}
  {%- set relation = dbt_ivm.ivm_relation_of(node) -%}
  {%- set existing = adapter.get_relation(database=relation.database, schema=relation.schema, identifier=relation.identifier) -%}
  {%- set asked = dbt_ivm.ivm_flags(relation, existing, false) -%}
  {%- set sql = modules.ivm.compiled(ref, node.unique_id) -%}
  {{ return(modules.ivm[what](adapter, node, sql, relation, graph, asked, **kwargs)) }}
{% endmacro %}
