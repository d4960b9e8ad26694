"""A partition tells where a stored row is only as long as its key has one row.

A merge by key that skips partitions does not meet a stored row of the same key in another partition.  Rows of keys that
the view has are where they are, or the change says where they were; a key that is new to the view must not be stored
anywhere.  So partitions that are no part of the key are skipped only when nothing new comes, when all new keys lie
beyond the range of stored ones (seen.py), or when the user believes keys.  The look at the change tells which.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.refresh.apply.context import ApplyContext
from dbt_ivm.refresh.apply.seen import is_beyond
from dbt_ivm.refresh.apply.staging import Bound, Seen, read_bound
from dbt_ivm.refresh.apply.taken import asks_for_range, ranged_columns
from dbt_ivm.render.merge import number
from dbt_ivm.storage.layout import Shape

NEW, STORED = f"{names.PREFIX}new", f"{names.PREFIX}stored"


@dataclass(frozen=True)
class NewKeys:
    """What a look told about keys that are new to the view; ``stored``: the range of all stored keys, if asked for."""

    rows: int
    bounds: tuple[Bound, ...] = ()
    nulls: frozenset[str] = frozenset()
    stored: Mapping[str, tuple[str, str]] | None = None


def must_be_known(ctx: ApplyContext, columns: Iterable[Seen]) -> bool:
    """Whether some column that is looked at is no part of the key."""
    is_keyed = ctx.layout.shape is Shape.KEYED and not ctx.believes_keys
    return is_keyed and any(c.column not in ctx.layout.identity for c in columns)


def new_key_facts(ctx: ApplyContext, kept_as: str) -> dict[str, exp.Expr]:
    """Facts for the look at the change: new keys, and the range of stored ones while that is not known."""
    new = exp.Select(expressions=[nodes.column(k) for k in ctx.layout.identity])
    new = new.from_(RelationName((kept_as,)).table(), copy=False)
    new = new.group_by(*(nodes.column(k) for k in ctx.layout.identity), copy=False)
    weight = exp.Sum(this=nodes.column(names.WEIGHT))
    new = new.having(exp.GT(this=weight, expression=number(0)), copy=False)
    pairs: list[exp.Expr] = [exp.Literal.string("rows"), exp.Count(this=exp.Star())]
    for column in ranged_columns(ctx):
        is_null = exp.Is(this=nodes.column(column), expression=exp.Null())
        pairs += [exp.Literal.string(column), _range(column, nulls=exp.CountIf(this=is_null))]
    facts: dict[str, exp.Expr] = {NEW: exp.Subquery(this=_one(pairs).from_(nodes.aliased(new, "new"), copy=False))}
    if asks_for_range(ctx):
        stored = [part for c in ranged_columns(ctx) for part in (exp.Literal.string(c), _range(c))]
        facts[STORED] = exp.Subquery(this=_one(stored).from_(ctx.storage.table(), copy=False))
    return facts


def read_new_keys(ctx: ApplyContext, text: str) -> NewKeys | None:
    """What the look told; None when it was not asked."""
    looked = json.loads(text)
    new, stored = looked.get(NEW), looked.get(STORED)
    if new is None:
        return None
    types = ctx.layout.types
    bounds, nulls, ranges = [], set(), {}
    for column in ranged_columns(ctx):
        told, held = new.get(column) or {}, (stored or {}).get(column) or {}
        bound = read_bound(column, types[column], told.get("low"), told.get("high"))
        bounds += [bound] if bound else []
        nulls |= {column} if told.get("nulls") else set()
        range_ = read_bound(column, types[column], held.get("low"), held.get("high"))
        if range_:
            ranges[column] = (range_.low, range_.high)
    return NewKeys(int(new["rows"]), tuple(bounds), frozenset(nulls), ranges if stored is not None else None)


def bounds_to_trust(ctx: ApplyContext, bounds: tuple[Bound, ...], new: NewKeys | None) -> tuple[Bound, ...]:
    """The bounds by which a merge may skip files."""
    stored = ctx.state.seen if new is None or new.stored is None else new.stored
    if new is None or new.rows == 0 or is_beyond(stored, new.bounds, new.nulls):
        return bounds
    return tuple(b for b in bounds if b.column in ctx.layout.identity)


def _range(column: str, **more: exp.Expr) -> exp.Expr:
    value = nodes.column(column)
    facts = {"low": nodes.cast(exp.Min(this=value), "string"), "high": nodes.cast(exp.Max(this=value.copy()), "string")}
    return _struct([part for name, fact in (facts | more).items() for part in (exp.Literal.string(name), fact)])


def _one(pairs: list[exp.Expr]) -> exp.Select:
    return exp.Select(expressions=[_struct(pairs)])


def _struct(pairs: list[exp.Expr]) -> exp.Expr:
    return exp.Anonymous(this="NAMED_STRUCT", expressions=pairs)
