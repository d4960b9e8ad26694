{#- dbt run-operation ivm_compact [--args '{model: m}']: remove dead rows and tombstones now, of one model or of all. -#}
{% macro ivm_compact(model=none) %}
  {%- do dbt_ivm.ivm_require_python() -%}
  {%- if execute -%}
    {%- for name in ([model] if model is not none else modules.ivm.model_names(graph)) -%}
      {%- do print(name ~ ': ' ~ dbt_ivm.ivm_planned('compact', name)) -%}
    {%- endfor -%}
  {%- endif -%}
{% endmacro %}
