with per_product as (
  select product_id, sum(line_amount) as revenue
  from {{ ref('stg_shop__order_lines') }}
  group by product_id
)
select product_id, revenue, dense_rank() over (order by revenue desc) as place
from per_product
