select upper(currency) as currency, rate_date, rate from {{ source('finance', 'rates') }}
