{#- One column that stands for several: md5 over their texts.  NULL and the empty string differ, and so do
    ('a', 'bc') and ('ab', 'c'). -#}
{% macro surrogate_key(columns) %}
  {%- set parts = [] -%}
  {%- for column in columns -%}
    {%- do parts.append("coalesce(cast(" ~ column ~ " as string), '<null>')") -%}
    {%- if not loop.last -%}{%- do parts.append("'|'") -%}{%- endif -%}
  {%- endfor -%}
  {{ dbt.hash(dbt.concat(parts)) }}
{%- endmacro %}
