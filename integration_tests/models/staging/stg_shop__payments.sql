select payment_id, order_id, paid_on, amount from {{ source('shop', 'payments') }}
