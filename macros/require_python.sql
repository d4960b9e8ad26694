{#- Guard of every entry point: macros without the Python package cannot plan anything. -#}
{% macro ivm_require_python() %}
  {%- if execute and modules.ivm is not defined -%}
    {%- do exceptions.raise_compiler_error(
      "dbt-ivm's macros are installed, its Python package is not: run 'pip install dbt-ivm' in the environment of this dbt"
    ) -%}
  {%- endif -%}
{% endmacro %}
