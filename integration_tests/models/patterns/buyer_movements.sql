{% set buyers %}select customer_id from {{ ref('stg_shop__orders') }} where year(ordered_on) ={% endset %}
select customer_id, 'won' as movement from ({{ buyers }} 2024 except {{ buyers }} 2023)
union all
select customer_id, 'kept' from ({{ buyers }} 2024 intersect {{ buyers }} 2023)
union all
select customer_id, 'lost' from ({{ buyers }} 2023 except {{ buyers }} 2024)
