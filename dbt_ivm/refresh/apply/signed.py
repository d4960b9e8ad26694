"""The net change of a keyed view as rows to append: '+' a row, '−' a copy of the old row as a tombstone."""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.comparable import form
from dbt_ivm.operators import Operator
from dbt_ivm.refresh.apply.context import DUPLICATE, ApplyContext
from dbt_ivm.render.merge import case, equal, fail, number

#: What a row does, in the column that holds the state of a state row.  Of tombstones it is stored.
INSERTED, UPDATED, DELETED = "inserted", "updated", "deleted"


def signed_rows(ctx: ApplyContext, change: Operator) -> exp.Select:
    """A key has at most one row before and one after; anything else proves the declared key wrong."""
    types, keys = ctx.layout.types, [nodes.column(k, "d") for k in ctx.layout.identity]
    forms = [form(k.copy(), types[k.name], exact=False) for k in keys]
    weight = nodes.column(names.WEIGHT, "d")
    positive = exp.GT(this=weight, expression=number(0))
    counts = {
        names.ADDED: case(positive, weight.copy(), number(0)),
        names.REMOVED: case(positive.copy(), number(0), exp.Neg(this=weight.copy())),
    }
    counted = exp.Select(expressions=[nodes.column(c, "d") for c in (*ctx.layout.stored, names.WEIGHT)])
    for name, value in counts.items():
        window = exp.Window(this=exp.Sum(this=value), partition_by=[k.copy() for k in forms])
        counted.append("expressions", exp.Alias(this=window, alias=nodes.name(name)))
    counted = counted.from_(nodes.aliased(ctx.query(change), "d"), copy=False)

    own = [nodes.column(k, "c") for k in ctx.layout.identity]
    added, removed = nodes.column(names.ADDED, "c"), nodes.column(names.REMOVED, "c")
    double = nodes.cast(fail(f"{DUPLICATE}{ctx.relied_on}: ", *own), "int")
    twice = exp.or_(exp.GT(this=added, expression=number(1)), exp.GT(this=removed, expression=number(1)))
    is_new = exp.GT(this=nodes.column(names.WEIGHT, "c"), expression=number(0))
    part = exp.Case(
        ifs=[exp.If(this=twice, true=double), exp.If(this=is_new, true=number(names.DATA_PART))],
        default=number(names.TOMBSTONE_PART),
    )
    kind = exp.Case(
        ifs=[
            exp.If(this=exp.and_(is_new.copy(), equal(removed.copy(), 0)), true=exp.Literal.string(INSERTED)),
            exp.If(this=equal(added.copy(), 1), true=exp.Literal.string(UPDATED)),
        ],
        default=exp.Literal.string(DELETED),
    )
    rows = exp.Select(expressions=[nodes.column(c, "c") for c in ctx.layout.stored])
    rows.append("expressions", exp.Alias(this=part, alias=nodes.name(names.PART)))
    rows.append("expressions", exp.Alias(this=kind, alias=nodes.name(names.STATE)))
    return rows.from_(nodes.aliased(counted, "c"), copy=False)
