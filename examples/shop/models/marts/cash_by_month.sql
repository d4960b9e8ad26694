with movements as (
    select o.order_date as day, l.amount
    from {{ ref('stg_lines') }} as l
    join {{ ref('stg_orders') }} as o on l.order_id = o.order_id
    union all
    select refund_date as day, -amount as amount
    from {{ ref('stg_refunds') }}
)

select
    year(day) as year,
    month(day) as month,
    sum(amount) as cash,
    count(*) filter (where amount < 0) as refunds
from movements
group by year(day), month(day)
