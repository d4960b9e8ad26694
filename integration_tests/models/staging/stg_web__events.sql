select event_id, user_id, kind, happened_at, cast(happened_at as date) as happened_on, received_at, items
from {{ source('web', 'events') }}
