with per_month as (
  select channel, ordered_month, sum(amount) as revenue
  from {{ ref('stg_shop__orders') }}
  group by channel, ordered_month
)
select
  this_year.channel,
  this_year.ordered_month,
  this_year.revenue,
  last_year.revenue as revenue_last_year,
  this_year.revenue - last_year.revenue as growth
from per_month this_year
left join per_month last_year
  on last_year.channel = this_year.channel
  and last_year.ordered_month = add_months(this_year.ordered_month, -12)
