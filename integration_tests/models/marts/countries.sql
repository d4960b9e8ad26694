select distinct country from {{ ref('order_facts') }}
