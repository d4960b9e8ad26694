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
from typing import Any

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.refresh.apply.context import ApplyContext
from dbt_ivm.refresh.apply.seen import is_beyond
from dbt_ivm.refresh.apply.staging import LOOK, Bound, Seen, read_bound
from dbt_ivm.refresh.apply.taken import ranged_columns, read_stored_range
from dbt_ivm.render.merge import number
from dbt_ivm.storage.layout import Shape

NEW = f"{names.PREFIX}new"


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
    """Facts for the look at the change: how many keys are new, and their ranges."""
    new = exp.Select(expressions=[nodes.column(k) for k in ctx.layout.identity])
    new = new.from_(RelationName((kept_as,)).table(), copy=False)
    new = new.group_by(*(nodes.column(k) for k in ctx.layout.identity), copy=False)
    weight = exp.Sum(this=nodes.column(names.WEIGHT))
    new = new.having(exp.GT(this=weight, expression=number(0)), copy=False)
    pairs: list[exp.Expr] = [exp.Literal.string("rows"), exp.Count(this=exp.Star())]
    for column in ranged_columns(ctx):
        pairs += [exp.Literal.string(column), _range(column)]
    facts = exp.Select(expressions=[_struct(pairs)]).from_(nodes.aliased(new, "new"), copy=False)
    return {NEW: exp.Subquery(this=facts)}


def read_new_keys(ctx: ApplyContext, row: Mapping[str, Any]) -> NewKeys | None:
    """What the look told; None when it was not asked."""
    new = json.loads(str(row[LOOK])).get(NEW)
    if new is None:
        return None
    types = ctx.layout.types
    bounds, nulls = [], set()
    for column in ranged_columns(ctx):
        told = new.get(column) or {}
        bound = read_bound(column, types[column], told.get("low"), told.get("high"))
        bounds += [bound] if bound else []
        nulls |= {column} if told.get("nulls") else set()
    return NewKeys(int(new["rows"]), tuple(bounds), frozenset(nulls), read_stored_range(ctx, row))


def bounds_to_trust(ctx: ApplyContext, bounds: tuple[Bound, ...], new: NewKeys | None) -> tuple[Bound, ...]:
    """The bounds by which a merge may skip files."""
    if new is not None:
        stored = ctx.state.seen if new.stored is None else new.stored
        if new.rows == 0 or is_beyond(stored, new.bounds, new.nulls):
            return bounds
    return tuple(b for b in bounds if b.column in ctx.layout.identity)


def _range(column: str) -> exp.Expr:
    value = nodes.column(column)
    is_null = exp.Is(this=value.copy(), expression=exp.Null())
    facts: dict[str, exp.Expr] = {
        "low": nodes.cast(exp.Min(this=value), "string"),
        "high": nodes.cast(exp.Max(this=value.copy()), "string"),
        "nulls": exp.CountIf(this=is_null),
    }
    return _struct([part for name, fact in facts.items() for part in (exp.Literal.string(name), fact)])


def _struct(pairs: list[exp.Expr]) -> exp.Expr:
    return exp.Anonymous(this="NAMED_STRUCT", expressions=pairs)
