"""Which rows of a storage table count.

A refresh by log does not touch stored rows.  It adds the new ones and, for each row that is no longer true, a
tombstone: a copy of that row in a partition of its own.  A row is dead when a tombstone of its identity has a larger
sequence number:

    live = data ▷ tombstones   on the identity and data.seq < tombstone.seq

Every tombstone kills exactly one row and is a copy of it, so as bags  live = data − tombstones.  That is what makes
Delta's own change feed of the table the view's change feed: changes of tombstones count with the opposite sign.

The join compares one 64-bit hash, which Spark does much faster than several columns, and then the columns themselves.
"""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm import names, nodes

STORED = "stored"
DEAD = f"{names.PREFIX}dead"


def from_live_rows(select: exp.Select, storage: exp.Table, identity: tuple[str, ...]) -> exp.Select:
    """FROM the live rows of a storage table; ``select`` may name its columns bare or as ``stored.column``."""
    tombstones = storage.copy()
    data = storage.copy()
    data.set("alias", nodes.alias(STORED))
    keys = [f"{DEAD}_{i}" for i, _ in enumerate(identity, 1)]
    seq = f"{DEAD}_seq"
    dead = (
        exp.Select(
            expressions=[
                *(exp.Alias(this=nodes.column(c), alias=nodes.name(k)) for c, k in zip(identity, keys, strict=True)),
                exp.Alias(this=nodes.column(names.SEQ), alias=nodes.name(seq)),
            ]
        )
        .from_(tombstones)
        .where(_is_part(names.TOMBSTONE_PART), copy=False)
    )
    mine = [nodes.column(c, STORED) for c in identity]
    theirs = [nodes.column(k, DEAD) for k in keys]
    same_hash = exp.EQ(this=_hash(mine), expression=_hash(theirs))
    same = exp.and_(*(exp.NullSafeEQ(this=m, expression=t) for m, t in zip(mine, theirs, strict=True)))
    # inside IF, so that the engine does not take the columns as further join keys
    younger = exp.Case(ifs=[exp.If(this=same, true=nodes.column(seq, DEAD))])
    older = exp.LT(this=nodes.column(names.SEQ, STORED), expression=younger)
    hint = exp.Anonymous(this="BROADCAST", expressions=[exp.column(DEAD)])
    select = select.from_(data, copy=False)
    select.set("hint", exp.Hint(expressions=[hint]))
    select.append(
        "joins", exp.Join(this=nodes.aliased(dead, DEAD), side="LEFT", kind="ANTI", on=exp.and_(same_hash, older))
    )
    return select.where(_is_part(names.DATA_PART, STORED), copy=False)


def without_tombstones(query: exp.Query) -> exp.Query:
    """A facade's query with its storage table read as if it held live rows only: how models downstream see it."""
    for join in list(query.find_all(exp.Join)):
        if join.alias_or_name == DEAD and join.kind == "ANTI":
            join.pop()
    return query


def _is_part(part: int, table: str | None = None) -> exp.Expr:
    return exp.EQ(this=nodes.column(names.PART, table), expression=exp.Literal.number(part))


def _hash(columns: list[exp.Column]) -> exp.Expr:
    return exp.Anonymous(this="XXHASH64", expressions=[c.copy() for c in columns])
