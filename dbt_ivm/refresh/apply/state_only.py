"""Versions moved on but nothing the view reads can have changed: only the state row is written."""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.refresh.apply.context import STALE, Applied, ApplyContext
from dbt_ivm.render.merge import case, equal, fail, number


def state_only(ctx: ApplyContext) -> Applied:
    seq = nodes.column(names.SEQ)
    found = fail(STALE, seq)
    values = {
        names.STATE: exp.Literal.string(ctx.state),
        names.SEQ: case(equal(seq, ctx.seq), nodes.cast(number(ctx.seq + 1), "bigint"), found),
    }
    statement = exp.update(ctx.storage.table(), None, dialect="spark")
    statement.set(
        "expressions",
        [exp.EQ(this=nodes.column(n), expression=v) for n, v in values.items()],
    )
    part = nodes.column(names.PART)
    statement.set("where", exp.Where(this=equal(part, names.STATE_PART)))
    return Applied("state only", statement, None)
