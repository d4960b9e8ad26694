"""Ways to bring a delta into the storage table, one file each; ``apply_change`` picks a MERGE by one readable rule.

rows are only added, view not aggregated   append          matches no stored rows; of keyed rows it looks up the keys
rows of a keyed view                       merge_keyed     updates and deletes by key
rows of a view without a key               merge_bag       finds one stored row per removed row
groups, measures adjustable                merge_groups    adds to counts and sums
groups, some measure not adjustable        merge_recomputed  affected groups anew

A table that is kept by log has its own ways (log.py).
"""

from __future__ import annotations

from dbt_ivm.refresh.apply.append import append_bag
from dbt_ivm.refresh.apply.context import Applied, ApplyContext
from dbt_ivm.refresh.apply.merge_bag import merge_bag
from dbt_ivm.refresh.apply.merge_groups import merge_groups
from dbt_ivm.refresh.apply.merge_keyed import merge_keyed
from dbt_ivm.refresh.apply.merge_recomputed import merge_recomputed
from dbt_ivm.refresh.apply.state_only import state_only
from dbt_ivm.storage.layout import Shape

__all__ = ["Applied", "ApplyContext", "apply_change"]


def apply_change(ctx: ApplyContext) -> Applied:
    if ctx.change is None:
        return state_only(ctx)
    if ctx.layout.shape is Shape.GROUPS:
        return merge_groups(ctx)
    if ctx.layout.shape is Shape.RECOMPUTED:
        return merge_recomputed(ctx)
    if ctx.layout.shape is Shape.KEYED:  # rows that are only added are kept first, see append_keyed
        return merge_keyed(ctx)
    return append_bag(ctx) if ctx.only_adds else merge_bag(ctx)
