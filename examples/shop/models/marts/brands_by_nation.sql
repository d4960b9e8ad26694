-- DISTINCT: a pair leaves when its last line does
select distinct c.nation, p.brand
from {{ ref('stg_lines') }} as l
join {{ ref('stg_orders') }} as o on l.order_id = o.order_id
join {{ ref('stg_customers') }} as c on o.customer_id = c.customer_id
join {{ ref('stg_products') }} as p on l.product_id = p.product_id
