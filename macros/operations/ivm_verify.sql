{#-
  dbt run-operation ivm_verify [--args '{model: m}']: is the result of one model, or of all, what its query gives now?
  Compares as equals_recompute does and fails when a model differs.  Writes nothing.
-#}
{% macro ivm_verify(model=none, tolerance=none, limit=5) %}
  {%- do dbt_ivm.ivm_require_python() -%}
  {%- if execute -%}
    {%- set wrong = [] -%}
    {%- for name in ([model] if model is not none else modules.ivm.model_names(graph)) -%}
      {%- set behind = dbt_ivm.ivm_planned('is_up_to_date', name) -%}
      {%- if behind -%}
        {%- do print(name ~ ': not compared, ' ~ behind) -%}
      {%- else -%}
        {%- set different = dbt_ivm.ivm_difference(name, tolerance, limit) -%}
        {%- do print(name ~ (': DIFFERENT, for example' if different.rows | length else ': equal')) -%}
        {%- if different.rows | length -%}
          {%- do wrong.append(name) -%}
          {%- do print(modules.ivm.table_text(different)) -%}
        {%- endif -%}
      {%- endif -%}
    {%- endfor -%}
    {%- if wrong -%}
      {%- do exceptions.raise_compiler_error('differs from its query: ' ~ wrong | join(', ') ~ '. A full refresh repairs it; please report it') -%}
    {%- endif -%}
  {%- endif -%}
{% endmacro %}


{% macro ivm_difference(name, tolerance, limit) %}
  {%- set node = modules.ivm.find_model(graph, name) -%}
  {{ return(run_query('select * from (' ~ dbt_ivm.ivm_difference_query(node, tolerance) ~ ') ivm_difference limit ' ~ limit)) }}
{% endmacro %}
