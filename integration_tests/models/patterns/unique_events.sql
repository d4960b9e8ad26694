select event_id, user_id, kind, happened_at, happened_on, items
from (
  select *, row_number() over (partition by event_id order by received_at, happened_at) as delivery
  from {{ ref('stg_web__events') }}
)
where delivery = 1
