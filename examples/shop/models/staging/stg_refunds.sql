select id as refund_id, order_id, refund_date, amount
from {{ source('raw', 'refund') }}
