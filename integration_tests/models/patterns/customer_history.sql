with versions as (
  select distinct customer_id, country, cast(loaded_at as date) as valid_from
  from {{ ref('stg_crm__customer_loads') }}
)
select
  customer_id,
  country,
  valid_from,
  lead(valid_from) over (partition by customer_id order by valid_from, country) as valid_to
from versions
