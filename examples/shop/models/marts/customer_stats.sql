-- a model on a model; a deleted order may take the minimum or maximum of its customer with it
select
    customer_id,
    min(order_date) as first_order,
    max(order_date) as last_order,
    max(amount) as largest_line,
    sum(amount) as revenue,
    count(*) as order_lines
from {{ ref('order_lines') }}
group by customer_id
