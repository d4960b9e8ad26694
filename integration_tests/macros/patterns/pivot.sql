{#- One column per value: {{ pivot('channel', ['web', 'app'], 'amount') }}. -#}
{% macro pivot(column, values, measure) %}
  {%- for value in values %}
  sum(case when {{ column }} = '{{ value }}' then {{ measure }} else 0 end) as {{ value }}
    {%- if not loop.last %},{% endif %}
  {%- endfor %}
{%- endmacro %}
