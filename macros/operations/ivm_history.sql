{#- dbt run-operation ivm_history --args '{model: m, limit: 20}': what refreshes did, newest first.  Writes nothing. -#}
{% macro ivm_history(model, limit=20) %}
  {%- do dbt_ivm.ivm_require_python() -%}
  {%- if execute -%}
    {%- set lines = dbt_ivm.ivm_planned('history', model, limit=limit) -%}
    {%- for line in lines -%}
      {%- do print(('%-5s %-23s %-22s %-16s %s' | format(line.version, line.at[:23], line.what, line.rows, line.reason)).rstrip()) -%}
    {%- endfor -%}
    {%- if not lines -%}{%- do print(model ~ ': not built yet') -%}{%- endif -%}
  {%- endif -%}
{% endmacro %}
