{#- A row per day, week or month, both ends included; the column has the name of the step. -#}
{% macro date_spine(first, last, step) -%}
select explode(sequence(date'{{ first }}', date'{{ last }}', interval 1 {{ step }})) as {{ step }}
{%- endmacro %}
