with ranked as (
  select *, row_number() over (partition by customer_id order by loaded_at desc, file desc) as version
  from {{ ref('stg_crm__customer_loads') }}
)
select customer_id, email, country, loaded_at
from ranked
where version = 1
