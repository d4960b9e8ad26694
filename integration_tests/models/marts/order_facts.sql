select o.order_id, o.placed, o.amount, o.status, c.name, c.country
from {{ ref('stg_orders') }} o
join {{ ref('stg_customers') }} c using (customer_id)
where o.status <> 'cancelled'
