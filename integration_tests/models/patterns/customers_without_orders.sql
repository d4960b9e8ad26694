select c.customer_id, c.country
from {{ ref('customers') }} c
left anti join {{ ref('stg_shop__orders') }} o on o.customer_id = c.customer_id
