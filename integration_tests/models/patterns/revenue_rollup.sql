select
  case when grouping(p.category) = 1 then 'all' else p.category end as category,
  case when grouping(p.title) = 1 then 'all' else p.title end as title,
  sum(l.line_amount) as revenue,
  sum(l.quantity) as pieces
from {{ ref('stg_shop__order_lines') }} l
join {{ ref('stg_shop__products') }} p on p.product_id = l.product_id
group by rollup(p.category, p.title)
