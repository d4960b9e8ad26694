{#-
  Each combination of the columns occurs once and contains no NULL.  On a column, or on the relation with `columns`.
  The failing rows are the keys and how many rows have them.
-#}
{% test primary_key(model, column_name=none, columns=none) %}
  {%- do dbt_ivm.ivm_require_python() -%}
  {%- if execute -%}
    {{ modules.ivm.primary_key_query(model, columns or column_name) }}
  {%- endif -%}
{% endtest %}
