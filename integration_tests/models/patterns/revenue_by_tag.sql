with bridge as (
  select product_id, tag, cast(1.0 / count(*) over (partition by product_id) as decimal(9,6)) as share
  from {{ ref('stg_shop__product_tags') }}
)
select coalesce(b.tag, 'untagged') as tag, sum(l.line_amount * coalesce(b.share, 1)) as revenue, count(*) as lines
from {{ ref('stg_shop__order_lines') }} l
left join bridge b on b.product_id = l.product_id
group by 1
