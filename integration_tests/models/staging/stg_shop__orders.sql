select
  order_id,
  customer_id,
  ordered_at,
  cast(ordered_at as date) as ordered_on,
  cast(date_trunc('month', ordered_at) as date) as ordered_month,
  lower(status) as status,
  coalesce(channel, 'web') as channel,
  upper(currency) as currency,
  amount
from {{ source('shop', 'orders') }}
where status is null or status <> 'test'
