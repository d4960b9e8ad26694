with paid as (
  select order_id, sum(amount) as paid, max(paid_on) as paid_on
  from {{ ref('stg_shop__payments') }}
  group by order_id
)
select
  coalesce(o.order_id, p.order_id) as order_id,
  o.amount as ordered,
  p.paid,
  case
    when o.order_id is null then 'payment without order'
    when p.order_id is null then 'not paid'
    when o.amount = p.paid then 'settled'
    else 'differs'
  end as state
from {{ ref('stg_shop__orders') }} o
full join paid p on p.order_id = o.order_id
