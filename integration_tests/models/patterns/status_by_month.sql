select *
from (select ordered_month, status, amount from {{ ref('stg_shop__orders') }})
pivot (sum(amount) for status in ('paid' as paid, 'shipped' as shipped, 'returned' as returned))
