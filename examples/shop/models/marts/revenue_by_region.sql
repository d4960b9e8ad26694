-- a model on a model on views: it receives the changed groups of revenue_by_segment, nothing else
select region, sum(revenue) as revenue, sum(order_lines) as order_lines, count(*) as segments
from {{ ref('revenue_by_segment') }}
group by region
