"""The clock as a source of views that ask for the date or the time.

What a refresh takes as now is the source's version: the day since 1970, or the microsecond.  It is in the state like
the version of a table, so a later day is a change like any other: the view moves from the result of one day to that of
the next, and a run on the same day finds nothing to do.
"""

from __future__ import annotations

from datetime import date, timedelta

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.catalog.tables import Table, TableColumn

#: Kind of clock and its type.
TYPES = {"date": "date", "timestamp": "timestamp"}
#: Kind of clock and its name as a source.
NAMES = {"date": "today", "timestamp": "now"}

#: One row with both versions.
CLOCK_STATEMENT = "SELECT UNIX_DATE(CURRENT_DATE()) AS `date`, UNIX_MICROS(CURRENT_TIMESTAMP()) AS `timestamp`"


def clock_name(kind: str) -> RelationName:
    return RelationName.parse(f"{names.CLOCK}.{NAMES[kind]}")


def clock_table(kind: str) -> Table:
    return Table(clock_name(kind), (TableColumn("now", TYPES[kind]),))


def clock_kind(name: RelationName) -> str:
    """The kind of clock, or "" for a table."""
    return next((kind for kind in TYPES if clock_name(kind) == name), "")


def clock_literal(kind: str, version: int | None) -> exp.Expr:
    """What the clock shows at a version.

    >>> clock_literal("date", 19723).sql(dialect="spark")
    "CAST('2024-01-01' AS DATE)"
    """
    if kind == "date":
        shown = (date(1970, 1, 1) + timedelta(days=version or 0)).isoformat()
        return nodes.cast(exp.Literal.string(shown), "date")
    return exp.Anonymous(this="TIMESTAMP_MICROS", expressions=[exp.Literal.number(version or 0)])
