"""Which row comes and which goes in which round, so that every round is a new change of the same size.

A share of the rows of each picked table by a hash of the key: of N buckets, bucket 2r comes in round r and bucket
2r + 1 goes in round r.  Other tables follow their foreign keys: a row comes with the last and goes with the first of
the rows it references, so no round leaves a row behind that references nothing.  A row that would go before it comes is
never there; one that comes and goes in the same round is inserted and deleted in it.

    comes = -1      there from the start
    goes  = NEVER   stays
"""

from __future__ import annotations

from benchmarks.keys.schema import TABLES
from benchmarks.keys.views import View

NEVER = 1_000_000
IS_MOVING = f"comes >= 0 or goes < {NEVER}"


def picked_tables(view: View, change: str) -> tuple[str, ...]:
    """
    >>> from benchmarks.keys.views import VIEWS
    >>> picked_tables(VIEWS["snwf"], "policy"), picked_tables(VIEWS["snwf"], "facts")
    (('customer_address', 'item', 'date_dim'), ('web_sales',))
    """
    return {"policy": view.leaves, "facts": view.roots}.get(change, ())


def scheduled(view: View, table: str, rows: str, is_picked: bool, share: int, rounds: int) -> str:
    """A SELECT of the table's rows with ``comes`` and ``goes``; referenced rows that move are in ``moving_<table>``.

    Args:
        rows: the table as generated.
        share: one row of so many comes (and as many go) per round.
        rounds: rows of later rounds stay as they are.
    """
    key = ", ".join(f"t.{column}" for column in TABLES[table].primary_key)
    bucket = f"pmod(xxhash64('{TABLES[table].stored_as}', {key}), {share})"
    comes, goes = ["-1", "-1"], [str(NEVER), str(NEVER)]  # greatest and least want two
    if is_picked:
        mine = f"{bucket} < {2 * rounds} and {bucket} % 2"
        comes.append(f"case when {mine} = 0 then cast({bucket} div 2 as int) else -1 end")
        goes.append(f"case when {mine} = 1 then cast({bucket} div 2 as int) else {NEVER} end")
    joins = []
    for position, foreign_key in enumerate(view.foreign_keys(table)):
        alias = f"r{position}"
        pairs = zip(foreign_key.columns, TABLES[foreign_key.to].primary_key, strict=True)
        joins.append(f"left join moving_{foreign_key.to} {alias} on ")
        joins[-1] += " and ".join(f"t.{a} = {alias}.{b}" for a, b in pairs)
        comes.append(f"coalesce({alias}.comes, -1)")
        goes.append(f"coalesce({alias}.goes, {NEVER})")
    times = f"greatest({', '.join(comes)}) as comes, least({', '.join(goes)}) as goes"
    return f"select t.*, {times} from {rows} t {' '.join(joins)}"


def rows_at_start() -> str:
    return "comes < 0"


def rows_coming(number: int) -> str:
    return f"comes = {number} and goes >= {number}"


def rows_going(number: int) -> str:
    return f"goes = {number} and comes <= {number}"


def most_rounds(share: int) -> int:
    """Two buckets a round."""
    return share // 2
