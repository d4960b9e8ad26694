with per_day as (
  select ordered_on, sum(amount) as revenue, count(*) as orders
  from {{ ref('stg_shop__orders') }}
  group by ordered_on
)
select d.day, coalesce(p.revenue, 0) as revenue, coalesce(p.orders, 0) as orders
from {{ ref('days') }} d
left join per_day p on p.ordered_on = d.day
