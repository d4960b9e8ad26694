with steps as (
  select
    user_id,
    min(case when kind = 'visit' then happened_at end) as visited_at,
    min(case when kind = 'cart' then happened_at end) as filled_cart_at,
    min(case when kind = 'purchase' then happened_at end) as purchased_at
  from {{ ref('unique_events') }}
  where user_id is not null
  group by user_id
)
select
  cast(date_trunc('week', visited_at) as date) as week,
  count(*) as visitors,
  count(case when filled_cart_at >= visited_at then 1 end) as carts,
  count(case when filled_cart_at >= visited_at and purchased_at >= filled_cart_at then 1 end) as purchases
from steps
where visited_at is not null
group by 1
