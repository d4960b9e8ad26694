with per_product as (
  select p.category, p.title, sum(l.line_amount) as revenue
  from {{ ref('stg_shop__order_lines') }} l
  join {{ ref('stg_shop__products') }} p on p.product_id = l.product_id
  group by p.category, p.title
),
ranked as (
  select category, title, revenue, rank() over (partition by category order by revenue desc) as place
  from per_product
)
select * from ranked where place <= 3
