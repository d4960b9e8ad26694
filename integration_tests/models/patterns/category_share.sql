select
  p.category,
  p.title,
  sum(l.line_amount) as revenue,
  cast(sum(l.line_amount) / nullif(sum(sum(l.line_amount)) over (partition by p.category), 0) as decimal(9,4)) as share
from {{ ref('stg_shop__order_lines') }} l
join {{ ref('stg_shop__products') }} p on p.product_id = l.product_id
group by p.category, p.title
