with per_month as (
  select m.month, s.plan, sum(s.monthly_fee) as revenue, count(*) as subscriptions
  from {{ ref('months') }} m
  join {{ ref('stg_shop__subscriptions') }} s on s.started <= last_day(m.month) and s.ended > last_day(m.month)
  group by m.month, s.plan
)
select
  month, plan, revenue, subscriptions,
  revenue - lag(revenue) over (partition by plan order by month) as change
from per_month
