{#-
  Every row's reference leads to a row of `to`; references with a NULL in them are left out.  Arguments as of dbt's
  `relationships` (`to`, `field`), or `columns` and `to_columns` for composite keys.  The failing rows are the rows.
-#}
{% test foreign_key(model, to, field=none, column_name=none, columns=none, to_columns=none) %}
  {%- do dbt_ivm.ivm_require_python() -%}
  {%- if execute -%}
    {{ modules.ivm.foreign_key_query(model, columns or column_name, to, to_columns or field) }}
  {%- endif -%}
{% endtest %}
