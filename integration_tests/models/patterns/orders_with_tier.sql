select o.order_id, o.customer_id, o.ordered_on, o.amount, coalesce(t.tier, 'none') as tier
from {{ ref('stg_shop__orders') }} o
left join {{ ref('stg_crm__tiers') }} t
  on o.customer_id = t.customer_id and o.ordered_on >= t.valid_from and o.ordered_on < t.valid_to
