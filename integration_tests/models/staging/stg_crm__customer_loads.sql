select customer_id, lower(trim(email)) as email, coalesce(country, 'unknown') as country, loaded_at, file
from {{ source('crm', 'customer_loads') }}
