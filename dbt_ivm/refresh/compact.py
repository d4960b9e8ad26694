"""Compaction: the table rewritten as its live rows, in one commit that readers and the change feed do not notice.

It is also how a table leaves the log: without tombstones every way to apply is exact.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.refresh.state import METADATA_MARK, State
from dbt_ivm.render.merge import number
from dbt_ivm.render.query import sql_text
from dbt_ivm.storage.delta_format import commit_options, replace_rows
from dbt_ivm.storage.layout import Layout
from dbt_ivm.storage.live_rows import STORED, from_live_rows

#: Compaction is due when tombstones pass this share of the rows …
SHARE = 0.05
#: … and this number: below it reading does not suffer.
FEWEST_TOMBSTONES = 10_000
#: Tombstones are broadcast to every reader.
MOST_TOMBSTONES = 2_000_000
#: Every refresh adds small files.
MOST_REFRESHES = 50


def is_due(tombstones: int, rows: int | None, refreshes: int, share: float | None = None) -> bool:
    """Whether reading the log has become dearer than rewriting the table now and then.

    Args:
        share: tombstones in rows from which on it is due, as the model asks (``meta.ivm.compact_at``).

    >>> is_due(20_000, 1_000_000, 3), is_due(60_000, 1_000_000, 3), is_due(10, 100, 50)
    (False, True, True)
    >>> is_due(20_000, 1_000_000, 3, share=0.01), is_due(60_000, 1_000_000, 3, share=0.1), is_due(2, 10, 1, share=0.0)
    (True, False, True)
    """
    if tombstones > MOST_TOMBSTONES or refreshes >= MOST_REFRESHES:
        return True
    if share is not None:
        return tombstones > share * (rows or 0)
    return tombstones > max(FEWEST_TOMBSTONES, SHARE * (rows or 0))


def compacted(state: State, version: int, rows: int | None, mode: str) -> State:
    """The state that a compaction of this table version leaves behind."""
    return replace(
        state,
        seq=state.seq + 1,
        storage_version=version + 1,
        rows=rows,
        mode=mode,
        counts=None,
        adds_only=True,
        tombstones=0,
        refreshes=0,
    )


def compact(layout: Layout, storage: RelationName, version: int | None, state: State) -> str:
    """The statement; ``state`` is the one it leaves behind.

    Args:
        version: the table version whose live rows are kept; None reads the current one.
    """
    table = storage.table()
    if version is not None:
        literal = exp.Literal.number(version)
        table.set("version", exp.Version(this="VERSION", expression=literal, kind="AS OF"))
    rows = exp.Select(expressions=[nodes.column(c, STORED) for c in (*layout.stored, names.PART)])
    rows.append("expressions", exp.Alias(this=nodes.null("string"), alias=nodes.name(names.STATE)))
    rows.append("expressions", nodes.column(names.SEQ, STORED))
    rows = from_live_rows(rows, table, layout.identity)
    state = replace(state, adds_only=True)
    last = exp.Select(expressions=[exp.Alias(this=exp.Null(), alias=nodes.name(c)) for c in layout.stored])
    values = {
        names.PART: number(names.STATE_PART),
        names.STATE: exp.Literal.string(state.to_json()),
        names.SEQ: nodes.cast(number(state.seq), "bigint"),
    }
    for name, value in values.items():
        last.append("expressions", exp.Alias(this=value, alias=nodes.name(name)))
    query = sql_text(exp.union(rows, last, distinct=False, copy=False))
    return replace_rows(storage, query, commit_options(state.epoch, state.seq, METADATA_MARK + state.to_json()))
