with viewed as (
  select e.event_id, e.happened_on, item as product_id
  from {{ ref('unique_events') }} e
  lateral view explode(e.items) exploded as item
)
select v.product_id, p.title, count(*) as views, max(v.happened_on) as last_viewed
from viewed v
left join {{ ref('stg_shop__products') }} p on p.product_id = v.product_id
group by v.product_id, p.title
