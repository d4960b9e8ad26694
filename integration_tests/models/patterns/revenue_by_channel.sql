select ordered_month, {{ pivot('channel', ['web', 'app', 'phone'], 'amount') }}
from {{ ref('stg_shop__orders') }}
group by ordered_month
