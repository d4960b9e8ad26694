select distinct product_id, lower(tag) as tag
from {{ source('shop', 'product_tags') }}
where tag is not null
