with per_day as (
  select channel, ordered_on, sum(amount) as revenue
  from {{ ref('stg_shop__orders') }}
  group by channel, ordered_on
)
select
  channel,
  ordered_on,
  revenue,
  sum(revenue) over (
    partition by channel order by ordered_on range between interval 6 days preceding and current row
  ) as revenue_7_days
from per_day
