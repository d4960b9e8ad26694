select c.customer_id, c.email, c.country
from {{ ref('customers') }} c
where c.email not in (select email from {{ ref('stg_crm__blocklist') }})
  and exists (
    select 1 from {{ ref('stg_shop__orders') }} o
    where o.customer_id = c.customer_id and o.ordered_on >= date'2024-01-01'
  )
