with gaps as (
  select
    user_id, event_id, happened_at,
    lag(happened_at) over (partition by user_id order by happened_at, event_id) as previous_at
  from {{ ref('unique_events') }}
  where user_id is not null
),
numbered as (
  select
    user_id, happened_at,
    sum(case when previous_at is null or happened_at > previous_at + interval 30 minutes then 1 else 0 end)
      over (partition by user_id order by happened_at, event_id rows unbounded preceding) as session_number
  from gaps
)
select user_id, session_number, min(happened_at) as started_at, max(happened_at) as ended_at, count(*) as events
from numbered
group by user_id, session_number
