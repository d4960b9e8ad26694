with rates as (
  select
    currency, rate, rate_date as valid_from,
    coalesce(lead(rate_date) over (partition by currency order by rate_date), date'9999-12-31') as valid_to
  from {{ ref('stg_finance__rates') }}
)
select
  o.order_id,
  o.ordered_on,
  o.currency,
  o.amount,
  case when o.currency = 'EUR' then o.amount else cast(o.amount * r.rate as decimal(10,2)) end as amount_eur
from {{ ref('stg_shop__orders') }} o
left join rates r on r.currency = o.currency and o.ordered_on >= r.valid_from and o.ordered_on < r.valid_to
