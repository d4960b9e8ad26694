{#- What other systems do to the sources before a run. -#}
{% macro stage_round(round) %}
  {%- if round is not none -%}
    {%- do ivm_integration.run_statements(ivm_integration.round_statements(round | int)) -%}
  {%- endif -%}
{% endmacro %}


{#- The same for the sources of models/patterns: round 0 creates them. -#}
{% macro stage_patterns(round) %}
  {%- if round is not none and round | int == 0 -%}
    {%- do ivm_integration.run_statements(ivm_integration.pattern_sources()) -%}
  {%- elif round is not none -%}
    {%- do ivm_integration.run_statements(ivm_integration.pattern_changes(round | int)) -%}
  {%- endif -%}
{% endmacro %}


{% macro run_statements(statements) %}
  {%- if execute and flags.WHICH in ('run', 'build') -%}
    {%- for statement in statements -%}
      {%- do run_query(statement) -%}
    {%- endfor -%}
  {%- endif -%}
{% endmacro %}


{% macro round_statements(round) %}
  {%- set raw = target.schema -%}
  {%- set feed = "using delta tblproperties (delta.enableChangeDataFeed = true)" -%}
  {%- set rounds = [
    [
      "create table " ~ raw ~ ".raw_orders (id bigint, customer_id bigint, status string, placed date, amount decimal(10,2)) " ~ feed,
      "create table " ~ raw ~ ".raw_customers (id bigint, name string, country string) " ~ feed,
      "insert into " ~ raw ~ ".raw_customers select id, concat('c', id), case when id % 3 = 0 then null when id % 3 = 1 then 'de' else 'fr' end from range(40)",
      "insert into " ~ raw ~ ".raw_orders select id, nullif(id % 41, 7), case when id % 5 = 0 then 'returned' else 'done' end, date_add(date'2024-01-01', cast(id % 90 as int)), cast(id * 1.37 as decimal(10,2)) from range(2000)",
    ],
    [
      "insert into " ~ raw ~ ".raw_orders values (5000, 3, 'done', date'2020-02-02', 1.00), (5001, null, 'done', date'2024-02-02', 2.00)",
      "delete from " ~ raw ~ ".raw_orders where id % 97 = 0",
      "update " ~ raw ~ ".raw_customers set country = 'it' where id in (1, 2, 3)",
      "delete from " ~ raw ~ ".raw_customers where id = 5",
      "insert into " ~ raw ~ ".raw_customers values (5, 'again', 'de'), (40, 'new', null)",
    ],
    [
      "insert into " ~ raw ~ ".raw_orders values (6000, 4, 'done', date'2024-03-01', 10.00), (6001, 4, 'returned', date'2024-03-01', 11.00)",
    ],
  ] -%}
  {{ return(rounds[round]) }}
{% endmacro %}
