select
    order_id,
    line_number,
    product_id,
    quantity,
    cast(price * quantity * (1 - discount) as decimal(12, 2)) as amount
from {{ source('raw', 'lineitem') }}
