select
  f.country,
  r.region,
  sum(f.amount) as revenue,
  avg(f.amount) as mean_amount,
  count(*) filter (where f.status = 'returned') as returned,
  min(f.placed) as first_order,
  max(f.placed) as last_order
from {{ ref('order_facts') }} f
join {{ ref('regions') }} r on f.country = r.country
group by 1, 2
