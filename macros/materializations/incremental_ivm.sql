{#-
  validate → refresh (Python plans and runs one statement) → facade → docs, grants, hooks.
  Nothing of an existing relation is dropped before the storage table holds the new result.
-#}
{% materialization incremental_ivm, adapter='spark', supported_languages=['sql'] %}
  {%- do dbt_ivm.ivm_require_python() -%}
  {%- set facade = this.incorporate(type='view') -%}
  {%- set existing = load_cached_relation(this) -%}
  {%- do dbt_ivm.ivm_assert_contract(sql) -%}

  {{ run_hooks(pre_hooks) }}

  {%- set outcome = modules.ivm.refresh(adapter, model, sql, facade, graph, dbt_ivm.ivm_flags(this, existing, should_full_refresh()), node=model) -%}
  {%- do dbt_ivm.ivm_create_facade(facade, existing, outcome.facade_sql) -%}
  {%- do store_result('main', response=modules.ivm.result(outcome)) -%}

  {%- do apply_grants(facade, config.get('grants'), should_revoke(existing, full_refresh_mode=true)) -%}

  {{ run_hooks(post_hooks) }}
  {{ return({'relations': [facade]}) }}
{% endmaterialization %}


{% macro ivm_flags(relation, existing, asked_full) %}
  {%- set storage = adapter.get_relation(
    database=relation.database, schema=relation.schema, identifier=modules.ivm.storage_identifier(relation.identifier)
  ) -%}
  {{ return({
    'storage_exists': storage is not none,
    'facade_kind': existing.type if existing is not none else '',
    'facade_text': existing.information if existing is not none else '',
    'asked_full': asked_full,
    'is_empty_run': flags.EMPTY,
  }) }}
{% endmacro %}


{% macro ivm_assert_contract(sql) %}
  {%- if config.get('contract').enforced -%}
    {%- do get_assert_columns_equivalent(sql) -%}
  {%- endif -%}
{% endmacro %}


{% macro ivm_create_facade(facade, existing, facade_sql) %}
  {%- if facade_sql is not none -%}
    {%- if existing is not none and existing.type != 'view' -%}
      {%- do adapter.drop_relation(existing) -%}
    {%- endif -%}
    {%- call statement('ivm_facade') -%}
      {{ get_create_view_as_sql(facade, facade_sql) }}
    {%- endcall -%}
  {%- endif -%}
{% endmacro %}
