"""Groups whose measures can be adjusted.

count += Σ weight      nonnull += Σ weight [x not null]      sum += Σ x·weight
min, max: the smaller (larger) of stored and added, unless a removed value reached it; such groups, and only
those, are recomputed from the sources (affected-key rule).  Groups at count 0 go away.
"""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.delta.weights import restrict_to
from dbt_ivm.operators import (
    Aggregate,
    Field,
    Filter,
    LeftLookup,
    Measure,
    Operator,
    Project,
    Projection,
    Scan,
    SemiJoin,
    col,
)
from dbt_ivm.refresh.apply.context import DRIFT, Applied, ApplyContext
from dbt_ivm.render.merge import (
    TARGET,
    case,
    coalesce,
    delete,
    differs,
    equal,
    fail,
    insert,
    merge_into,
    number,
    source,
    target,
    update,
    when_matched,
    when_not_matched,
)
from dbt_ivm.storage.measures import Partial
from dbt_ivm.types import decimal_of

PICK = {"min": "LEAST", "max": "GREATEST"}


def merge_groups(ctx: ApplyContext) -> Applied:
    group = ctx.layout.identity
    changes = group_changes(ctx)
    if may_lose_extrema(ctx):
        wanted = (*group, *(p.name for p in _extrema(ctx)))
        looked_up = LeftLookup(changes, stored_groups(ctx, wanted), tuple((g, stored_name(g)) for g in group))
        changes = with_recomputed(ctx, looked_up, changes.column_names)
    rows = ctx.query(changes)
    using = ctx.with_state_row(rows, changes.column_names)
    on = [ctx.same_part(), *ctx.same_identity(), *ctx.within_bounds(TARGET)]
    recomputed = names.RECOMPUTED in changes.column_names
    return Applied("merge by group", merge_into(ctx.storage, using, on, _clauses(ctx, recomputed)), changes)


def group_changes(ctx: ApplyContext) -> Operator:
    """Per group what the change adds to each stored column."""
    measures = ctx.layout.measures
    assert measures is not None
    return Aggregate(
        ctx.required_change,
        ctx.layout.identity,
        tuple(m for p in measures.partials for m in _changes(p)),
        is_global=ctx.layout.aggregate.is_global,
    )


def _extrema(ctx: ApplyContext) -> tuple[Partial, ...]:
    assert ctx.layout.measures is not None
    return ctx.layout.measures.having("min", "max")


def may_lose_extrema(ctx: ApplyContext) -> bool:
    return bool(_extrema(ctx)) and not ctx.only_adds


def _changes(partial: Partial) -> list[Measure]:
    """What the change adds to a stored column."""
    weight = col(names.WEIGHT)
    if partial.role == "count":
        return [Measure(partial.name, coalesce(exp.Sum(this=weight), number(0)), "bigint")]
    argument = col(partial.argument)
    present = exp.Not(this=exp.Is(this=argument, expression=exp.Null()))
    if partial.role == "nonnull":
        total = exp.Sum(this=case(present, weight, number(0)))
        return [Measure(partial.name, coalesce(total, number(0)), "bigint")]
    if partial.role == "sum":
        factor = nodes.cast(weight, "decimal(10,0)") if decimal_of(partial.type) else weight
        return [Measure(partial.name, exp.Sum(this=exp.Mul(this=argument, expression=factor)))]
    call = exp.Min if partial.role == "min" else exp.Max
    return [
        Measure(_added(partial), call(this=case(exp.GT(this=weight, expression=number(0)), argument)), partial.type),
        Measure(
            _removed(partial),
            call(this=case(exp.LT(this=weight.copy(), expression=number(0)), argument.copy())),
            partial.type,
        ),
    ]


def _added(partial: Partial) -> str:
    return f"{partial.name}_added"


def _removed(partial: Partial) -> str:
    return f"{partial.name}_removed"


def _new(partial: Partial) -> str:
    return f"{partial.name}_new"


def stored_name(name: str) -> str:
    """A stored column next to the changes."""
    return f"{names.PREFIX}stored_{name}"


def _found(name: str) -> str:
    return f"{names.PREFIX}found_{name}"


def stored_groups(ctx: ApplyContext, columns: tuple[str, ...], live: tuple[str, ...] = ()) -> Operator:
    """Columns of the stored groups; ``live`` is the identity of a table that may hold dead rows."""
    fields = (*(Field(stored_name(n), n) for n in columns), Field(stored_name(names.PART), names.PART))
    stored: Operator = Scan(ctx.storage, fields, live=live)
    if not live:
        stored = Filter(stored, equal(col(stored_name(names.PART)), names.DATA_PART))
    for within in ctx.within_bounds(prefix=stored_name("")):
        stored = Filter(stored, within)
    return stored


def with_recomputed(ctx: ApplyContext, looked_up: Operator, kept: tuple[str, ...]) -> Operator:
    """Mark groups whose extremum may have gone and look up their values in the sources."""
    group, extrema = ctx.layout.identity, _extrema(ctx)
    at_risk = exp.or_(*(_may_be_gone(p) for p in extrema))
    flag = Projection(names.RECOMPUTED, case(at_risk, number(1), number(0)))
    flagged = Project(looked_up, (*(Projection(n, col(n)) for n in kept), flag))
    risky = Filter(flagged, equal(col(names.RECOMPUTED), 1))
    if group:
        affected = restrict_to(ctx.post, risky, group)
    else:
        affected = SemiJoin(ctx.post, Project.keeping(risky, (names.RECOMPUTED,)), ())
    calls = tuple(
        Measure(_new(p), (exp.Min if p.role == "min" else exp.Max)(this=col(p.argument)), p.type) for p in extrema
    )
    anew = Aggregate(affected, group, calls, is_global=not group)
    renamed = Project(
        anew, (*(Projection(_found(g), col(g)) for g in group), *(Projection(_new(p), col(_new(p))) for p in extrema))
    )
    return Project.keeping(
        LeftLookup(flagged, renamed, tuple((g, _found(g)) for g in group)),
        (*flagged.column_names, *(_new(p) for p in extrema)),
    )


def _may_be_gone(partial: Partial) -> exp.Expr:
    """A removed value that is as extreme as what is stored or added."""
    extreme = exp.func(PICK[partial.role], col(stored_name(partial.name)), col(_added(partial)))
    compare = exp.LTE if partial.role == "min" else exp.GTE
    return compare(this=col(_removed(partial)), expression=extreme)


def _clauses(ctx: ApplyContext, recomputed: bool) -> list[exp.When]:
    measures = ctx.layout.measures
    assert measures is not None
    keys = tuple(source(k) for k in ctx.layout.identity)
    total = exp.Add(this=target(names.COUNT), expression=source(names.COUNT))
    drift = nodes.cast(fail(DRIFT, *keys), "bigint")
    new = {p.name: new_value(p, target(p.name), recomputed) for p in measures.partials}
    first = {p.name: new_value(p, None, recomputed) for p in measures.partials}
    whens = [ctx.compare_and_set()]
    whens.append(when_matched(exp.LT(this=total, expression=number(0)), update({names.COUNT: drift})))
    if not ctx.layout.aggregate.is_global:
        whens.append(when_matched(equal(total.copy(), 0), delete()))
    changed = exp.or_(*(changes_value(p, new[p.name]) for p in measures.partials))
    whens += [
        when_matched(changed, update({**new, names.SEQ: number(ctx.seq + 1)})),
        when_not_matched(
            exp.and_(ctx.is_data(), exp.GT(this=source(names.COUNT), expression=number(0))),
            ctx.inserted({**{k.name: k for k in keys}, **first}),
        ),
        ctx.state_must_exist(),
        when_not_matched(exp.LT(this=source(names.COUNT), expression=number(0)), insert({names.COUNT: drift.copy()})),
    ]
    return whens


def new_value(partial: Partial, stored: exp.Expr | None, recomputed: bool) -> exp.Expr:
    """The new value of a stored column; ``stored`` is None for a new group."""
    if partial.role in ("count", "nonnull"):
        return exp.Add(this=stored, expression=source(partial.name)) if stored is not None else source(partial.name)
    if partial.role == "sum":
        return _sum(partial, stored)
    added: exp.Expr = source(_added(partial))
    value = exp.func(PICK[partial.role], stored, added) if stored is not None else added
    if not recomputed:
        return value
    return case(equal(source(names.RECOMPUTED), 1), source(_new(partial)), value)


def _sum(partial: Partial, stored: exp.Expr | None) -> exp.Expr:
    """NULL when no value is left, as SUM says."""
    nonnull = f"{names.PREFIX}nonnull_{partial.name.rsplit('_', 1)[1]}"
    if stored is None:
        return case(exp.GT(this=source(nonnull), expression=number(0)), source(partial.name))
    left = exp.Add(this=target(nonnull), expression=source(nonnull))
    total = exp.Add(this=coalesce(stored, number(0)), expression=coalesce(source(partial.name), number(0)))
    return case(exp.GT(this=left, expression=number(0)), total)


def changes_value(partial: Partial, new: exp.Expr) -> exp.Expr:
    if partial.role in ("min", "max"):
        return differs(target(partial.name), new.copy(), partial.type)
    return exp.NEQ(this=source(partial.name), expression=number(0))
