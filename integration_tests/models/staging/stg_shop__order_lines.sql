select order_id, line_number, product_id, quantity, price, quantity * price as line_amount
from {{ source('shop', 'order_lines') }}
