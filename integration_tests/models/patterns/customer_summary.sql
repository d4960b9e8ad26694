with orders as (
  select
    customer_id, count(*) as orders, sum(amount) as revenue, min(ordered_on) as first_order,
    max(struct(ordered_at, order_id, status)) as latest
  from {{ ref('stg_shop__orders') }}
  group by customer_id
),
payments as (
  select o.customer_id, sum(p.amount) as paid
  from {{ ref('stg_shop__payments') }} p
  join {{ ref('stg_shop__orders') }} o on o.order_id = p.order_id
  group by o.customer_id
)
select
  c.customer_id, c.country, o.first_order, o.latest.status as latest_status,
  coalesce(o.orders, 0) as orders, coalesce(o.revenue, 0) as revenue, coalesce(p.paid, 0) as paid,
  case when o.orders is null then 'prospect' when o.orders = 1 then 'new' else 'returning' end as segment
from {{ ref('customers') }} c
left join orders o on o.customer_id = c.customer_id
left join payments p on p.customer_id = c.customer_id
