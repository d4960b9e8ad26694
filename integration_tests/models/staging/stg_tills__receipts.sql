select receipt, store, sold_on, total from {{ source('tills', 'receipts') }}
