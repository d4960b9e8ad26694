select o.customer_id, o.order_id, o.ordered_at, o.status, o.amount
from {{ ref('stg_shop__orders') }} o
where o.ordered_at = (
  select max(later.ordered_at)
  from {{ ref('stg_shop__orders') }} later
  where later.customer_id = o.customer_id
)
