select subscription_id, customer_id, plan, monthly_fee, started, coalesce(ended, date'9999-12-31') as ended
from {{ source('shop', 'subscriptions') }}
