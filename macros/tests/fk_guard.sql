{#-
  The FK-Guard, before the next refresh: no key that rows reference was both removed and inserted in the changes of `to`
  that some incremental_ivm model has not consumed yet.  Red is not an error in the data: refreshes stay exact, they
  look up the rows that reference those keys again.  Arguments as of `foreign_key`.
-#}
{% test fk_guard(model, to, field=none, column_name=none, columns=none, to_columns=none) %}
  {%- do dbt_ivm.ivm_require_python() -%}
  {%- if execute -%}
    {{ modules.ivm.fk_guard_query(adapter, graph, model, columns or column_name, to, to_columns or field) }}
  {%- endif -%}
{% endtest %}
