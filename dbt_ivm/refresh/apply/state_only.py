"""Versions moved on but nothing the view reads can have changed: only the state row is written."""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm import names
from dbt_ivm.refresh.apply.context import STALE, Applied, ApplyContext
from dbt_ivm.render.merge import case, equal, fail, number


def state_only(ctx: ApplyContext) -> Applied:
    seq = exp.column(exp.to_identifier(names.SEQ, quoted=True))
    found = fail(STALE, seq)
    values = {
        names.STATE: exp.Literal.string(ctx.state),
        names.SEQ: case(equal(seq, ctx.seq), exp.cast(number(ctx.seq + 1), "bigint"), found),
    }
    statement = exp.update(ctx.storage.table(), None, dialect="spark")
    statement.set(
        "expressions",
        [exp.EQ(this=exp.column(exp.to_identifier(n, quoted=True)), expression=v) for n, v in values.items()],
    )
    part = exp.column(exp.to_identifier(names.PART, quoted=True))
    statement.set("where", exp.Where(this=equal(part, names.STATE_PART)))
    return Applied("state only", statement, None)
