with sales as (
  select 'shop' as origin, cast(order_id as string) as sale, ordered_on as sold_on, channel as place, amount
  from {{ ref('stg_shop__orders') }}
  union all
  select 'tills', receipt, sold_on, store, total
  from {{ ref('stg_tills__receipts') }}
)
select {{ surrogate_key(['origin', 'sale']) }} as sale_key, origin, sale, sold_on, place, amount
from sales
