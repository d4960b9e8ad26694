"""What a refresh does before its commit: compute once, look, check.

carried_sources      small changes, known to the planner from then on
kept_sources         changes that the delta reads more than once
checked_references   declared foreign keys
log_steps            rows to append by log, and where their keys are
merge_steps          the change of a large table, and which files it touches
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from dbt_ivm.analysis.join_graph import base_of
from dbt_ivm.analysis.scans import scans_of
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.delta.carried import CarriedChange, fetch_statement, is_carried, is_exact
from dbt_ivm.delta.kept import KeptChange, used_twice
from dbt_ivm.delta.weights import net
from dbt_ivm.optimizer.contract_lookups import tree_name
from dbt_ivm.refresh.apply import Applied, ApplyContext, apply_change
from dbt_ivm.refresh.apply.append import append_keyed
from dbt_ivm.refresh.apply.log import ONE_TASK_ROWS, append_kept, logged_rows, look_at_rows, only_state
from dbt_ivm.refresh.apply.new_keys import bounds_to_trust, must_be_known, new_key_facts
from dbt_ivm.refresh.apply.seen import is_beyond, widened
from dbt_ivm.refresh.apply.staging import Seen, look_statement, prunable
from dbt_ivm.refresh.apply.taken import asks_for_range, look_at_stored, ranged_columns, with_stored_range
from dbt_ivm.refresh.foreign_keys import VERIFY, DeclaredEdge, EdgeStatus, dangling_after, declared_edges, edge_status
from dbt_ivm.refresh.keeping import (
    FETCH,
    LOOK_AT_CHANGE,
    LOOK_AT_REFERENCES,
    LOOK_AT_ROWS,
    LOOK_AT_STORED,
    Keeping,
    Known,
    Step,
    keep_step,
)
from dbt_ivm.refresh.references import look_at_references, read_references, reference_queries
from dbt_ivm.refresh.state import LOG_MODE, RowCounts
from dbt_ivm.render.query import sql_text
from dbt_ivm.storage.delta_format import TableOptions
from dbt_ivm.storage.layout import Shape

UNKNOWN = RowCounts(None, None, None)


def fetchable(ctx: ApplyContext) -> list[KeptChange]:
    """Small changes of sources, fetched when at least one is used more than once; reading a change once is cheaper."""
    if not _several_uses(ctx):
        return []
    found = []
    for source in sorted(ctx.few, key=str):
        window = ctx.deltas.window(source)
        if window is not None and scans_of(ctx.root, source):
            change = KeptChange.of("", ctx.root, source, window, small=True)
            if all(is_carried(f.type) for f in change.fields):
                found.append(change)
    return found


def carried_sources(ctx: ApplyContext, keeping: Keeping) -> tuple[list[Step], ApplyContext]:
    """Fetch the small changes of all sources at once; then the plan knows them."""
    changes = fetchable(ctx) if keeping.fetches else []
    if not changes:
        return [], ctx
    step = Step(FETCH, "fetch the small changes of sources", partial(fetch_statement, changes, ctx.small))
    rows = keeping.known.carried
    if rows is None:
        return [step], ctx
    exact = [change for change in changes if is_exact(rows[change.source])]
    carried = {change.source: CarriedChange(change, rows[change.source]) for change in exact}
    adding = frozenset(source for source, change in carried.items() if change.adds_only)
    insert_only = ctx.insert_only | adding
    return [step], replace(ctx, deltas=ctx.deltas.keeping(carried, insert_only), insert_only=insert_only)


def kept_sources(ctx: ApplyContext, keeping: Keeping) -> tuple[list[Step], ApplyContext]:
    """Changes of sources that the delta reads more than once; for a small table statements cost more than reading."""
    if not keeping.looks and ctx.state.mode != LOG_MODE and not concerned_edges(ctx):
        return [], ctx
    kept: dict[RelationName, KeptChange] = {}
    left = frozenset(source for source in ctx.changed if ctx.deltas.kept(source) is None)
    for position, source in enumerate(sorted(left & _several_uses(ctx), key=str), 1):
        window = ctx.deltas.window(source)
        assert window is not None
        name = f"{keeping.name}_{position}"
        kept[source] = KeptChange.of(name, ctx.root, source, window, str(source) in ctx.small)
    steps = [
        keep_step(k.name, f"compute the change of {source} once and keep it", partial(ctx.query, k.computed), k.small)
        for source, k in kept.items()
    ]
    known = {source: found for source in ctx.changed if (found := ctx.deltas.kept(source)) is not None}
    return steps, replace(ctx, deltas=ctx.deltas.keeping({**known, **kept}, ctx.insert_only)) if kept else ctx


def _several_uses(ctx: ApplyContext) -> frozenset[RelationName]:
    """Changed sources that the delta mentions more than once, or the delta and a look at foreign keys."""
    looked_at: set[RelationName] = set()
    for edge in concerned_edges(ctx):
        parent = base_of(edge.tree.members[edge.lookup.parent])
        looked_at |= {edge.lookup.scan.source} | ({parent.scan.source} if parent else set())
    return frozenset(used_twice(ctx.root, ctx.changed)) | (ctx.changed & looked_at)


def concerned_edges(ctx: ApplyContext) -> list[DeclaredEdge]:
    """Declared foreign keys that this change may have broken or mended, and those never counted."""
    if ctx.foreign_keys != VERIFY:
        return []
    return [e for e in declared_edges(ctx.root) if e.name not in ctx.dangling or e.is_concerned(ctx.deltas)]


def checked_references(ctx: ApplyContext, keeping: Keeping) -> tuple[list[Step], ApplyContext]:
    """A look at declared foreign keys; the rows to look up are kept for it, and used again by the commit."""
    edges = concerned_edges(ctx)
    steps: list[Step] = []
    kept: dict[str, str] = {}
    for position, tree in enumerate({id(e.tree): e.tree for e in edges}.values(), 1):
        rows = tree.extended_change(ctx.deltas, 0)
        if rows is not None and tree.reads_again(ctx.deltas):
            name = kept[tree_name(tree)] = f"{keeping.name}_rows_{position}"
            steps.append(keep_step(name, "compute the rows to look up once and keep them", partial(ctx.query, rows)))
    ctx = replace(ctx, kept_rows=kept)
    edges = concerned_edges(ctx)
    queries = reference_queries(ctx.deltas, edges, ctx.dangling)
    facts = keeping.known.references
    if queries:
        look = partial(look_at_references, queries, ctx.small)
        steps.append(Step(LOOK_AT_REFERENCES, "declared foreign keys: do they still hold?", look))
    elif edges:
        facts = read_references(ctx.deltas, edges, {})
    names = [edge.name for edge in declared_edges(ctx.root)] if ctx.foreign_keys == VERIFY else []
    counted = dangling_after(ctx.dangling, names, facts or {})
    return steps, replace(ctx, state=replace(ctx.state, dangling=counted), references=facts or {})


def edge_statuses(ctx: ApplyContext) -> tuple[EdgeStatus, ...]:
    return tuple(
        edge_status(
            edge.name,
            ctx.foreign_keys,
            ctx.state.dangling.get(edge.name),
            ctx.references.get(edge.name),
            edge.lookup.is_partial,
        )
        for edge in declared_edges(ctx.root)
    )


def log_steps(ctx: ApplyContext, keeping: Keeping) -> tuple[list[Step], Applied]:
    if ctx.change is None:
        return [], only_state(ctx)
    found = logged_rows(ctx)
    steps = [
        keep_step(keeping.name, "compute the rows once and keep them", found.rows),
        Step(LOOK_AT_ROWS, "count them; literals of new keys let Delta skip files", look_at_rows(ctx, keeping.name)),
    ]
    known = keeping.known
    counts = known.counts or UNKNOWN
    if ctx.layout.shape is not Shape.KEYED:
        return steps, append_kept(ctx, found, keeping.name, counts)
    ctx = replace(ctx, bounds=known.bounds or ())
    may_be_taken = _may_be_taken(ctx, known)
    if may_be_taken:
        purpose = "look up new keys among the stored rows"
        known_nulls = known.counts is not None and set(ctx.layout.identity) <= set(ranged_columns(ctx))
        nulls = not known_nulls or bool(known.new_nulls)
        few = counts.inserted is not None and counts.inserted <= ONE_TASK_ROWS
        steps.append(Step(LOOK_AT_STORED, purpose, look_at_stored(ctx, keeping.name, nulls, few)))
    ctx = _with_new_keys(ctx, known)
    return steps, append_kept(ctx, found, keeping.name, counts, may_be_taken and known.may_be_taken is not False)


def _may_be_taken(ctx: ApplyContext, known: Known) -> bool:
    """Whether a new key may be among the stored ones, as far as ranges and the user tell."""
    if ctx.believes_keys or (known.counts or UNKNOWN).inserted == 0:
        return False
    return not is_beyond(_seen(ctx, known), ctx.bounds, known.new_nulls)


def _with_new_keys(ctx: ApplyContext, known: Known) -> ApplyContext:
    """The range of stored keys after the commit."""
    seen = _seen(ctx, known)
    has_new = (known.counts or UNKNOWN).inserted != 0
    return ctx if seen is None else ctx.with_seen(widened(seen, ctx.bounds, has_new))


def _seen(ctx: ApplyContext, known: Known) -> Mapping[str, tuple[str, str]] | None:
    return ctx.state.seen if ctx.state.seen is not None else known.seen


def merge_steps(ctx: ApplyContext, table: TableOptions, keeping: Keeping) -> tuple[list[Step], Applied]:
    has_key = ctx.layout.shape is Shape.KEYED and bool(ctx.layout.identity)  # without columns there is one row at most
    if has_key and ctx.only_adds and ctx.change is not None:
        return _append_steps(ctx, keeping)
    if ctx.change is None:
        return [], apply_change(ctx)
    columns = bounded_columns(ctx, table) if keeping.looks else ()
    if not columns:  # which keys come is not told
        ctx = ctx.with_seen(None)
        return [], replace(apply_change(ctx), state=ctx.state)
    change = ctx.computed_change
    assert change is not None
    asks_for_new = must_be_known(ctx, columns)
    look = look_statement(keeping.name, columns, new_key_facts(ctx, keeping.name) if asks_for_new else {})
    if asks_for_new and asks_for_range(ctx):
        look = with_stored_range(ctx, look)
    steps = [
        keep_step(keeping.name, "compute the change once and keep it", partial(ctx.query, net(change))),
        Step(LOOK_AT_CHANGE, "which keys change: literals let Delta skip files", partial(sql_text, look)),
    ]
    bounds, new = keeping.known.bounds or (), keeping.known.new_keys
    trusted = bounds_to_trust(ctx, bounds, new) if asks_for_new else bounds
    seen = ctx.state.seen if new is None or new.stored is None else new.stored
    if seen is not None:
        ctx = ctx.with_seen(widened(seen, bounds, has_new=True))
    applied = apply_change(replace(ctx, kept_as=keeping.name, bounds=trusted))
    return steps, replace(applied, delta=change, state=ctx.state)


def _append_steps(ctx: ApplyContext, keeping: Keeping) -> tuple[list[Step], Applied]:
    found = logged_rows(ctx)
    if not keeping.looks:
        ctx = ctx.with_seen(None)
        applied = append_keyed(ctx, found.plan, keeping.name, not ctx.believes_keys, found.rows())
        return [], replace(applied, state=ctx.state)
    steps = [
        keep_step(keeping.name, "compute the rows once and keep them", found.rows),
        Step(LOOK_AT_ROWS, "literals of new keys let Delta skip files", look_at_rows(ctx, keeping.name)),
    ]
    ctx = replace(ctx, bounds=keeping.known.bounds or ())
    may_be_taken = _may_be_taken(ctx, keeping.known)
    ctx = _with_new_keys(ctx, keeping.known)
    return steps, replace(append_keyed(ctx, found.plan, keeping.name, may_be_taken), state=ctx.state)


def bounded_columns(ctx: ApplyContext, table: TableOptions) -> tuple[Seen, ...]:
    """Columns of the storage table whose values in the change may let Delta skip files."""
    if ctx.computed_change is None or ctx.only_adds or not ctx.is_small:
        return ()
    stored = ctx.layout.stored
    partitions = tuple(c.lower() for c in table.partition_by if c.lower() in stored)
    identity = ctx.layout.identity or (stored if ctx.layout.shape is Shape.BAG else ())
    return prunable(ctx.computed_change, partitions, identity)
