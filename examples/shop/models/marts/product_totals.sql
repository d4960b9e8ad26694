select p.brand, p.category, p.product, sum(l.quantity) as units, sum(l.amount) as revenue
from {{ ref('stg_lines') }} as l
join {{ ref('stg_products') }} as p on l.product_id = p.product_id
group by p.brand, p.category, p.product
having sum(l.quantity) > 0
