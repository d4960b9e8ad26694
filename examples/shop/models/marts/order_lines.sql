-- no aggregate: rows are found again by the key of the order line, the other tables are looked up by theirs
select
    l.order_id,
    l.line_number,
    o.order_date,
    c.customer_id,
    c.customer,
    c.segment,
    c.region,
    p.product,
    p.brand,
    p.category,
    l.quantity,
    l.amount
from {{ ref('stg_lines') }} as l
join {{ ref('stg_orders') }} as o on l.order_id = o.order_id
join {{ ref('stg_customers') }} as c on o.customer_id = c.customer_id
join {{ ref('stg_products') }} as p on l.product_id = p.product_id
