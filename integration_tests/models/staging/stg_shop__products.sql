select product_id, sku, market, title, coalesce(category, 'other') as category
from {{ source('shop', 'products') }}
