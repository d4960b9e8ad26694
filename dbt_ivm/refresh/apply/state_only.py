"""Versions moved on but nothing the view reads can have changed: only the state row is written."""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.refresh.apply.context import STALE, Applied, ApplyContext
from dbt_ivm.refresh.state import State
from dbt_ivm.render.merge import case, equal, fail, is_of_build, number
from dbt_ivm.render.query import sql_text


def state_only(ctx: ApplyContext) -> Applied:
    return Applied("state only", change_state(ctx.storage, ctx.seq, ctx.state), None)


def change_state(storage: RelationName, seq: int, state: State) -> str:
    """The state row replaced, if it is still of the build and the sequence number that this refresh has read."""
    found = nodes.column(names.SEQ)
    is_known = exp.and_(equal(found, seq), is_of_build(nodes.column(names.STATE), state.epoch))
    values = {
        names.STATE: exp.Literal.string(state.to_json()),
        names.SEQ: case(is_known, nodes.cast(number(seq + 1), "bigint"), fail(STALE, found.copy())),
    }
    statement = exp.update(storage.table(), None, dialect="spark")
    statement.set("expressions", [exp.EQ(this=nodes.column(n), expression=v) for n, v in values.items()])
    statement.set("where", exp.Where(this=equal(nodes.column(names.PART), names.STATE_PART)))
    return sql_text(statement)
