{#- Twelve small tables with NULLs, duplicates and references that lead nowhere; {} is the schema. -#}
{% macro pattern_sources() %}
  {%- set queries = {
    "crm_customer_loads":
      "select nullif(id % 40, 39) as customer_id, if(id % 9 = 0, null, concat(' User', id % 40, '@Example.com')) as email,
         element_at(array('de', 'fr', null, 'it'), cast(id % 7 % 4 + 1 as int)) as country,
         timestampadd(day, cast(id as int), timestamp'2024-01-01 00:00:00') as loaded_at, concat('f', id div 10) as file
       from (select id from range(70) union all select id from range(0, 70, 13))",
    "crm_tiers":
      "select id as customer_id, 'bronze' as tier, date'2023-01-01' as valid_from, date'2024-01-01' as valid_to from range(25)
       union all select id, if(id % 4 = 0, 'gold', 'silver'), date'2024-01-01', null from range(0, 25, 2)",
    "crm_blocklist":
      "select * from values ('USER3@example.com', 'asked'), ('user4@example.com', null), ('user4@example.com', 'bounced'),
         (null, 'unknown') as t(email, reason)",
    "shop_orders":
      "select id as order_id, nullif(id * 14 % 46, 10) as customer_id,
         timestampadd(hour, cast(id * 1109 % 17000 as int), timestamp'2023-01-05 07:30:00') as ordered_at,
         element_at(array('paid', 'Shipped', 'returned', null, 'test'), cast(id % 9 % 5 + 1 as int)) as status,
         element_at(array('web', 'app', null, 'phone'), cast(id % 4 + 1 as int)) as channel,
         element_at(array('EUR', 'usd', 'GBP'), cast(id % 3 + 1 as int)) as currency,
         cast(if(id % 31 = 0, null, id % 17 * 3.25 + 1) as decimal(10,2)) as amount
       from range(1, 201)",
    "shop_order_lines":
      "select 1 + id % 205 as order_id, cast(id div 205 as int) as line_number, nullif(id * 5 % 26, 3) as product_id,
         cast(1 + id % 4 as int) as quantity, cast(id % 23 + 0.49 as decimal(8,2)) as price
       from range(320)",
    "shop_products":
      "select id as product_id, concat('s', id div 2) as sku, element_at(array('eu', 'us', null), cast(id % 3 + 1 as int)) as market,
         concat('product ', id % 22) as title,
         element_at(array('books', 'games', 'music', 'tools', null), cast(id % 5 + 1 as int)) as category
       from range(24)",
    "shop_product_tags":
      "select id % 22 as product_id, element_at(array('New', 'sale', 'gift', null), cast(id % 7 % 4 + 1 as int)) as tag
       from (select id from range(48) union all select id from range(0, 48, 11))",
    "shop_payments":
      "select order_id * 10 as payment_id, order_id, date_add(cast(ordered_at as date), 3) as paid_on,
         if(order_id % 7 = 0, amount - 1, amount) as amount
       from {}.shop_orders where order_id % 3 <> 0
       union all select id, nullif(id * 29, 58), date'2024-03-09', cast(id as decimal(10,2)) from range(1, 10)",
    "shop_subscriptions":
      "select id as subscription_id, id * 3 % 41 as customer_id, element_at(array('basic', 'plus', null), cast(id % 3 + 1 as int)) as plan,
         cast(5 + id % 4 as decimal(6,2)) as monthly_fee, date_add(date'2023-10-15', cast(id * 11 as int)) as started,
         if(id % 3 = 1, null, date_add(date'2024-02-20', cast(id * 13 as int))) as ended
       from range(30)",
    "tills_receipts":
      "select concat('r', id) as receipt, element_at(array('north', 'south', null), cast(id % 3 + 1 as int)) as store,
         date_add(date'2024-02-20', cast(id * 2 as int)) as sold_on, cast(id * 1.15 as decimal(8,2)) as total
       from (select id from range(45) union all select id from range(0, 45, 8))",
    "finance_rates":
      "select c.currency, date_add(date'2023-01-08', cast(w.id * 14 as int)) as rate_date,
         cast(c.base + w.id % 9 * 0.0125 as decimal(8,5)) as rate
       from range(52) w cross join (values ('usd', 0.9), ('GBP', 1.15)) as c(currency, base)",
    "web_events":
      "select concat('e', id) as event_id, nullif(id % 23, 11) as user_id,
         element_at(array('visit', 'view', 'cart', 'purchase', null), cast(id div 23 % 5 + 1 as int)) as kind,
         timestampadd(minute, cast(id div 46 * 4400 + id % 23 * 3 + id % 2 * 11 as int), timestamp'2024-03-02 06:00:00') as happened_at,
         timestampadd(hour, cast(copy + id % 5 as int), timestamp'2024-03-20 00:00:00') as received_at,
         case when id % 6 = 0 then null when id % 6 = 1 then cast(array() as array<bigint>) else array(id % 25, id % 7, null) end as items
       from (select id, 0 as copy from range(230) union all select id, 9 from range(0, 230, 7))",
  } -%}
  {%- set statements = [] -%}
  {%- for table, query in queries.items() -%}
    {%- do statements.append("create table {}." ~ table ~ " using delta tblproperties (delta.enableChangeDataFeed = true) as " ~ query) -%}
  {%- endfor -%}
  {{ return(ivm_integration.in_schema(statements)) }}
{% endmacro %}


{% macro in_schema(statements) %}
  {%- set found = [] -%}
  {%- for statement in statements -%}{%- do found.append(statement.replace("{}", target.schema)) -%}{%- endfor -%}
  {{ return(found) }}
{% endmacro %}
