{#-
  dbt run-operation ivm_enable_change_feed [--args '{dry_run: true}']: turns Delta's change data feed on for every
  table that incremental_ivm models read and that has it off.
-#}
{% macro ivm_enable_change_feed(dry_run=false) %}
  {%- do dbt_ivm.ivm_require_python() -%}
  {%- if execute -%}
    {%- set tables = modules.ivm.sources_without_feed(adapter, graph) -%}
    {%- for table in tables -%}
      {%- if not dry_run -%}{%- do run_query(table.statement) -%}{%- endif -%}
      {%- do print(('would run: ' if dry_run else 'done: ') ~ table.statement) -%}
    {%- endfor -%}
    {%- if not tables -%}{%- do print('the change data feed is on for every table that incremental_ivm models read') -%}{%- endif -%}
  {%- endif -%}
{% endmacro %}
