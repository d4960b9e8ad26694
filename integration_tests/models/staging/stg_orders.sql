select id as order_id, customer_id, status, placed, amount from {{ source('raw', 'raw_orders') }}
