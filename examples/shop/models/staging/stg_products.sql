select id as product_id, name as product, brand, category
from {{ source('raw', 'product') }}
