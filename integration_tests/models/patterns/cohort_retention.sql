with cohorts as (
  select customer_id, min(ordered_month) as cohort
  from {{ ref('stg_shop__orders') }}
  where customer_id is not null
  group by customer_id
)
select
  c.cohort,
  cast(months_between(o.ordered_month, c.cohort) as int) as months_later,
  count(distinct o.customer_id) as customers,
  sum(o.amount) as revenue
from cohorts c
join {{ ref('stg_shop__orders') }} o on o.customer_id = c.customer_id
group by 1, 2
