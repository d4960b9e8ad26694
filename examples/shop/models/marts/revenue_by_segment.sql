select
    c.region,
    c.segment,
    sum(l.amount) as revenue,
    count(*) as order_lines,
    avg(l.amount) as average_line
from {{ ref('stg_lines') }} as l
join {{ ref('stg_orders') }} as o on l.order_id = o.order_id
join {{ ref('stg_customers') }} as c on o.customer_id = c.customer_id
group by c.region, c.segment
