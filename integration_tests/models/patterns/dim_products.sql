select {{ surrogate_key(['sku', 'market']) }} as product_key, product_id, sku, market, title, category
from {{ ref('stg_shop__products') }}
