"""Changed keys of a referenced table, and which of them unchanged rows of the referencing table may have.

    removed     a row of that key went           inserted   a row of that key came
    replaced    removed and inserted: the FK-Guard  Π_pk(Del) ∩ Π_pk(Ins) = ∅  does not hold for it
    doubled     only inserted, and more than one row has it now: it was there before, or came twice

See ``Reach`` for which of them count.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sqlglot import exp

from dbt_ivm import names
from dbt_ivm.operators.aggregate import Aggregate, Measure
from dbt_ivm.operators.base import Operator, col
from dbt_ivm.operators.filter import Filter
from dbt_ivm.operators.project import Project, Projection
from dbt_ivm.operators.scan import Field
from dbt_ivm.operators.scan_values import ScanValues, TextRow
from dbt_ivm.operators.semi_join import SemiJoin

if TYPE_CHECKING:
    from dbt_ivm.delta.context import DeltaContext
    from dbt_ivm.operators.lookup import Lookup


def key_names(lookup: Lookup) -> tuple[str, ...]:
    """Names for the key of an edge that no table has."""
    return tuple(names.hidden("touched", i) for i, _ in enumerate(lookup.on, 1))


def reached_keys(ctx: DeltaContext, lookup: Lookup) -> list[Operator]:
    """The changed keys within the reach of an edge, as plans under ``key_names``; none when nothing can be."""
    from dbt_ivm.operators.lookup import Reach

    change = ctx.delta_of(lookup.scan)
    if change is None:
        return []
    if lookup.reach is Reach.REPLACED:
        found = replaced_keys(ctx, lookup)
        return (
            [found] if isinstance(found, Operator) else _values(ctx, lookup, _is_replaced, _carried_keys(ctx, lookup))
        )
    carried = _carried_keys(ctx, lookup)
    if lookup.reach is Reach.ALL:
        if carried is not None:
            return _values(ctx, lookup, lambda low, high: True, carried)
        return [Project(_known(change, lookup.scanned), renaming(lookup.scanned, key_names(lookup)))]
    if carried is not None:
        removed = _values(ctx, lookup, lambda low, high: low < 0, carried)
    elif ctx.only_adds(lookup.scan):
        removed = []
    else:
        removed = [Project.keeping(Filter(changed_keys(change, lookup), is_removed()), key_names(lookup))]
    doubled = doubled_keys(ctx, lookup)
    return removed if doubled is None else [*removed, doubled]


def replaced_keys(ctx: DeltaContext, lookup: Lookup) -> Operator | int:
    """Keys for which the FK-Guard does not hold; only their number when the planner knows the change."""
    change = ctx.delta_of(lookup.scan)
    carried = _carried_keys(ctx, lookup)
    if change is None or ctx.only_adds(lookup.scan):
        return 0
    if carried is not None:
        return sum(_is_replaced(low, high) for low, high in carried.values())
    return Project.keeping(Filter(changed_keys(change, lookup), is_replaced()), key_names(lookup))


def doubled_keys(ctx: DeltaContext, lookup: Lookup) -> Operator | None:
    """Keys that were only inserted and that more than one row has now; None when no key was inserted."""
    inserted = inserted_keys(ctx, lookup)
    if inserted is None:
        return None
    rows = rows_with(ctx, lookup, inserted)
    each = Aggregate(rows, lookup.scanned, (Measure(names.COUNT, exp.Count(this=exp.Star()), "bigint"),))
    several = Filter(each, exp.GT(this=col(names.COUNT), expression=exp.Literal.number(1)))
    return Project(several, renaming(lookup.scanned, key_names(lookup)))


def inserted_keys(ctx: DeltaContext, lookup: Lookup) -> Operator | None:
    """Keys of which rows were only inserted; None when there is none."""
    change = ctx.delta_of(lookup.scan)
    if change is None:
        return None
    carried = _carried_keys(ctx, lookup)
    if carried is not None:
        return next(iter(_values(ctx, lookup, lambda low, high: low > 0, carried)), None)
    is_inserted = exp.GT(this=col(names.LOW), expression=exp.Literal.number(0))
    return Project.keeping(Filter(changed_keys(change, lookup), is_inserted), key_names(lookup))


def changed_keys(change: Operator, lookup: Lookup) -> Operator:
    """Each changed key once with its smallest and largest weight; NULL is referenced by nobody."""
    key = key_names(lookup)
    weight = Projection(names.WEIGHT, col(names.WEIGHT))
    keys = Project(_known(change, lookup.scanned), (*renaming(lookup.scanned, key), weight))
    low = Measure(names.LOW, exp.Min(this=col(names.WEIGHT)), "bigint")
    return Aggregate(keys, key, (low, Measure(names.HIGH, exp.Max(this=col(names.WEIGHT)), "bigint")))


def rows_with(ctx: DeltaContext, lookup: Lookup, wanted: Operator) -> Operator:
    """The key columns of the rows of the referenced table, after the change, that have a wanted key; none is NULL."""
    scan = Project.keeping(ctx.post_of(lookup.scan), tuple(dict.fromkeys(lookup.scanned)))
    return SemiJoin(scan, wanted, tuple(zip(lookup.scanned, wanted.column_names, strict=True)), nulls=False)


def is_removed() -> exp.Expr:
    return exp.LT(this=col(names.LOW), expression=exp.Literal.number(0))


def is_replaced() -> exp.Expr:
    return exp.and_(is_removed(), exp.GT(this=col(names.HIGH), expression=exp.Literal.number(0)))


def is_known(column: str) -> exp.Expr:
    return exp.Not(this=exp.Is(this=col(column), expression=exp.Null()))


def renaming(old: tuple[str, ...], new: tuple[str, ...]) -> tuple[Projection, ...]:
    return tuple(Projection(n, col(o)) for o, n in zip(old, new, strict=True))


def _carried_keys(ctx: DeltaContext, lookup: Lookup) -> dict[TextRow, tuple[int, int]] | None:
    """The changed keys, when the change of the referenced table is known to the planner."""
    from dbt_ivm.delta.carried import CarriedChange

    change = ctx.kept(lookup.scan.source)
    if not isinstance(change, CarriedChange):
        return None
    by_name = {f.name: f for f in lookup.scan.fields}
    return change.changed_keys([by_name[c] for c in lookup.scanned])


def _values(
    ctx: DeltaContext,
    lookup: Lookup,
    is_wanted: Callable[[int, int], bool],
    carried: Mapping[TextRow, tuple[int, int]] | None,
) -> list[Operator]:
    """Known keys, chosen by their smallest and largest weight; no plan when there is none."""
    keys = tuple(k for k, (low, high) in (carried or {}).items() if is_wanted(low, high))
    by_name = {f.name: f for f in lookup.scan.fields}
    source, scanned = lookup.scan.source, [by_name[c] for c in lookup.scanned]
    fields = tuple(Field(k, f.column, f.type) for k, f in zip(key_names(lookup), scanned, strict=True))
    return [ScanValues(fields, keys, f"Keys of {source}", (source, ctx.version(source)))] if keys else []


def _is_replaced(low: int, high: int) -> bool:
    return low < 0 < high


def _known(change: Operator, columns: tuple[str, ...]) -> Operator:
    return Filter(change, exp.and_(*(is_known(c) for c in columns)))
