"""Keyed rows that only add are appended without matching stored ones, so nothing would notice a key that is taken.

The delta is exact whatever the keys; they are relied on only to address stored rows.  So what must hold is that no
two live rows of the view have one identity:

    in the change          at most one row per identity before and one after        (signed_rows in signed.py)
    against stored rows    an identity that is new in the change is not live yet    (here)

Only new identities are looked up, and within the range that a look at the kept rows told, so that Delta skips files.
By log the lookup comes before the commit and ignores tombstones; only if it finds something the commit itself checks.
New identities beyond the range of all stored ones (seen.py) are not looked up, nor is anything where keys are believed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.delta.touched import renaming
from dbt_ivm.operators import Field, Filter, Operator, Project, Scan, ScanKept, SemiJoin, col
from dbt_ivm.refresh.apply.context import DUPLICATE, ApplyContext
from dbt_ivm.refresh.apply.signed import INSERTED
from dbt_ivm.refresh.apply.staging import MOST_COLUMNS, Bound, is_prunable, read_bound
from dbt_ivm.refresh.state import LOG_MODE
from dbt_ivm.render.merge import case, equal, number
from dbt_ivm.render.query import sql_text
from dbt_ivm.storage.layout import Shape

EXAMPLE = f"{names.PREFIX}example"


def look_at_stored(ctx: ApplyContext, kept_as: str, nulls: bool = True, few: bool = False) -> str:
    """One row: a new identity that a stored row has, dead or live, or NULL: mostly there is none, and that is proof.

    Args:
        nulls: whether some column of a new identity may be NULL.
        few: whether new identities are known to be few.
    """
    return sql_text(_stored_identity(ctx, kept_as, (), nulls, few))


def asks_for_range(ctx: ApplyContext) -> bool:
    """Whether the range of all stored keys is of use and not known yet."""
    is_of_use = ctx.layout.shape is Shape.KEYED and not ctx.believes_keys and bool(ranged_columns(ctx))
    return is_of_use and ctx.state.seen is None


def with_stored_range(ctx: ApplyContext, facts: exp.Select) -> exp.Select:
    """The row of facts and the range of all stored keys.

    Delta answers plain MIN and MAX of a whole table from its statistics.  So there is no condition, which is sound:
    the state row has NULLs there, and dead rows only widen the range.
    """
    pairs = [
        (f"{end}_{position}", exp.Alias(this=call(this=nodes.column(column)), alias=nodes.name(f"{end}_{position}")))
        for position, column in enumerate(ranged_columns(ctx), 1)
        for end, call in (("stored_low", exp.Min), ("stored_high", exp.Max))
    ]
    every = exp.Select(expressions=[alias for _, alias in pairs]).from_(ctx.storage.table(), copy=False)
    shown: list[exp.Expr] = [nodes.column(e.alias, "facts") for e in facts.expressions]
    for name, _ in pairs:
        shown.append(exp.Alias(this=nodes.cast(nodes.column(name, "seen"), "string"), alias=nodes.name(name)))
    select = exp.Select(expressions=shown).from_(nodes.aliased(facts, "facts"), copy=False)
    select.append("joins", exp.Join(this=nodes.aliased(every, "seen"), kind="CROSS"))
    return select


def read_stored_range(ctx: ApplyContext, row: Mapping[str, Any]) -> dict[str, tuple[str, str]] | None:
    """The range of all stored keys in that row; None when it was not asked for."""
    if not asks_for_range(ctx):
        return None
    types, found = _types(ctx), {}
    for position, column in enumerate(ranged_columns(ctx), 1):
        bound = read_bound(column, types[column], row[f"stored_low_{position}"], row[f"stored_high_{position}"])
        if bound:
            found[column] = (bound.low, bound.high)
    return found


def taken_identity(ctx: ApplyContext, kept_as: str) -> exp.Select:
    """One row: a new identity that a live row has already, or NULL."""
    return _stored_identity(ctx, kept_as, live=ctx.layout.identity if ctx.state.mode == LOG_MODE else ())


def _stored_identity(
    ctx: ApplyContext, kept_as: str, live: tuple[str, ...], nulls: bool = True, few: bool = False
) -> exp.Select:
    identity = ctx.layout.identity
    types = _types(ctx)
    part = Field(names.PART, names.PART, "int")
    stored: Operator = Scan(ctx.storage, (*(Field(k, k, types[k]) for k in identity), part), live=live)
    conditions = [equal(col(names.PART), names.DATA_PART), *(b.holds() for b in ctx.bounds)]
    stored = Filter(stored, exp.and_(*conditions))
    kind = Field(names.STATE, names.STATE, "string")
    kept = ScanKept(kept_as, (*(Field(k, k, types[k]) for k in identity), kind), "the rows as computed", few)
    new = Filter(kept, equal(col(names.STATE), exp.Literal.string(INSERTED)))
    apart = tuple(names.hidden("new", i) for i, _ in enumerate(identity, 1))
    chosen = SemiJoin(stored, Project(new, renaming(identity, apart)), tuple(zip(identity, apart, strict=True)), nulls)
    found = nodes.aliased(ctx.query(Project.keeping(chosen, identity)), "taken")
    struct = exp.Anonymous(
        this="NAMED_STRUCT", expressions=[p for k in identity for p in (exp.Literal.string(k), nodes.column(k))]
    )
    example = exp.Max(this=exp.Anonymous(this="TO_JSON", expressions=[struct]))
    return exp.Select(expressions=[exp.Alias(this=example, alias=nodes.name(EXAMPLE))]).from_(found, copy=False)


def error_if_taken(ctx: ApplyContext, example: exp.Expr) -> exp.Expr:
    """0, or the error that names the keys the view relies on and a value."""
    text = exp.Literal.string(f"{DUPLICATE}{ctx.relied_on}: ")
    message = exp.Anonymous(this="CONCAT", expressions=[text, example.copy()])
    error = nodes.cast(exp.Anonymous(this="RAISE_ERROR", expressions=[message]), "bigint")
    return case(exp.Is(this=example, expression=exp.Null()), nodes.cast(number(0), "bigint"), error)


def ranges_of_new(ctx: ApplyContext) -> dict[str, exp.Expr]:
    """Aggregates over the kept rows: the range of each identity column among new identities, as texts."""
    found: dict[str, exp.Expr] = {}
    is_new = equal(nodes.column(names.STATE), exp.Literal.string(INSERTED))
    for position, column in enumerate(ranged_columns(ctx), 1):
        value = case(is_new.copy(), nodes.column(column), exp.Null())
        found[f"low_{position}"] = nodes.cast(exp.Min(this=value), "string")
        found[f"high_{position}"] = nodes.cast(exp.Max(this=value.copy()), "string")
        is_null = exp.and_(is_new.copy(), exp.Is(this=nodes.column(column), expression=exp.Null()))
        found[f"nulls_{position}"] = exp.Sum(this=case(is_null, number(1), number(0)))
    return found


def read_ranges(ctx: ApplyContext, row: Mapping[str, Any]) -> tuple[tuple[Bound, ...], frozenset[str]]:
    """Bounds of new keys, and which of their columns have NULLs."""
    types = _types(ctx)
    bounds, nulls = [], set()
    for position, column in enumerate(ranged_columns(ctx), 1):
        bound = read_bound(column, types[column], row[f"low_{position}"], row[f"high_{position}"])
        bounds += [bound] if bound else []
        nulls |= {column} if row[f"nulls_{position}"] else set()
    return tuple(bounds), frozenset(nulls)


def ranged_columns(ctx: ApplyContext) -> list[str]:
    """Identity columns whose ranges are told."""
    types = _types(ctx)
    return [k for k in ctx.layout.identity if is_prunable(types[k])][:MOST_COLUMNS]


def _types(ctx: ApplyContext) -> dict[str, str]:
    assert ctx.layout.rows is not None
    return {c.name: c.type for c in ctx.layout.rows.columns}
