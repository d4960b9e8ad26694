select c.id as customer_id, c.name as customer, c.segment, n.name as nation, n.region
from {{ source('raw', 'customer') }} as c
join {{ source('raw', 'nation') }} as n on c.nation_id = n.id
