select d.day, count(distinct e.user_id) as users
from {{ ref('days') }} d
left join {{ ref('unique_events') }} e on e.happened_on between date_sub(d.day, 6) and d.day
group by d.day
