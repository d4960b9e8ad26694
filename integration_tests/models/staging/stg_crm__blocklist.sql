select lower(trim(email)) as email, reason
from {{ source('crm', 'blocklist') }}
where email is not null
