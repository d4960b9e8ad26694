"""Random schemas with foreign keys, and views that join along them: trees, diamonds, cycles of tables, two roots.

Most views join by LEFT JOIN, too: downwards these are lookups that keep the row, upwards any left join.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from tests.property.duck import Row
from tests.property.sources import OPERATIONS, Source, Timeline, operations_on, rows_of
from tests.property.test_histories import History

KEYS_HOLD, REFERENCES_DANGLE, KEYS_REPEAT = "keys hold", "references dangle", "keys repeat"
COMPOSITE = 2


@st.composite
def schemas(draw: Any) -> list[Source]:
    """Two to five tables t0…; each has a key of one or two columns and up to two foreign keys to any table."""
    count = draw(st.integers(2, 5))
    keys = [draw(st.sampled_from([1, 1, 1, COMPOSITE])) for _ in range(count)]
    found = []
    for number in range(count):
        columns = {f"k{i}": "int" for i in range(keys[number])}
        foreign = []
        for position in range(draw(st.sampled_from([0, 1, 1, 2]))):
            to = draw(st.integers(0, count - 1))
            referencing = tuple(f"f{position}_{i}" for i in range(keys[to]))
            columns |= {c: "int" for c in referencing}
            foreign.append((referencing, f"t{to}", tuple(f"k{i}" for i in range(keys[to]))))
        columns["v"] = draw(st.sampled_from(["int", "string"]))
        declared = tuple(f for f in foreign if draw(st.integers(0, 9)) > 0)  # some edges have a unique key only
        found.append(Source(f"t{number}", columns, keys[number], declared))
    if not any(s.foreign_keys for s in found):
        first = found[0]
        columns = {**first.columns, **{f"g{i}": "int" for i in range(keys[1])}}
        edge = (tuple(f"g{i}" for i in range(keys[1])), "t1", tuple(f"k{i}" for i in range(keys[1])))
        found[0] = replace(first, columns=columns, foreign_keys=(edge,))
    return found


@dataclass
class Joined:
    """A FROM clause that grows along foreign keys, downwards (to what is referenced) and upwards."""

    draw: Any
    sources: dict[str, Source]
    variables: list[tuple[str, str]]  # alias, table
    conditions: list[list[str]]  # of each variable but the first, where it is joined
    left: list[bool]
    has_left: bool

    def grow(self) -> None:
        downwards = [(alias, *edge) for alias, table in self.variables for edge in self.sources[table].foreign_keys]
        upwards = [
            (alias, source.name, columns, keys)
            for alias, table in self.variables
            for source in self.sources.values()
            for columns, to, keys in source.foreign_keys
            if to == table
        ]
        new = f"r{len(self.variables)}"
        if downwards and (not upwards or self.draw(st.integers(0, 3)) > 0):
            newest = [edge for edge in downwards if edge[0] == self.variables[-1][0]]
            alias, columns, table, keys = self.draw(st.sampled_from([*downwards, *newest, *newest]))
            pairs = [(f"{alias}.{c}", f"{new}.{k}") for c, k in zip(columns, keys, strict=True)]
        elif upwards:
            alias, table, columns, keys = self.draw(st.sampled_from(upwards))
            pairs = [(f"{new}.{c}", f"{alias}.{k}") for c, k in zip(columns, keys, strict=True)]
        else:
            return
        self.variables.append((new, table))
        self.left.append(self.has_left and self.draw(st.integers(0, 2)) > 0)
        self.conditions.append([" = ".join(p if self.draw(st.booleans()) else reversed(p)) for p in pairs])
        if self.left[-1] and self.draw(st.integers(0, 3)) == 0:
            numbers = [c for c, kind in self.columns() if kind == "int"]
            own = [c for c in numbers if c.startswith(f"{new}.")]
            other = self.draw(st.sampled_from(["1", *numbers]))
            operator = self.draw(st.sampled_from(["<=", "<>", "="]))
            self.conditions[-1].append(f"{self.draw(st.sampled_from(own))} {operator} {other}")

    def text(self, where: list[str]) -> str:
        """What follows FROM: explicit joins, or with commas where all are inner."""
        tables = [f"{_relation(self.draw, table, self.sources)} {alias}" for alias, table in self.variables]
        if not self.has_left:
            where = [c for found in self.conditions for c in found] + where
            listed = ", ".join(tables)
        else:
            joins = (
                f"\n{'LEFT ' * is_left}JOIN {table} ON {' AND '.join(found)}"
                for table, found, is_left in zip(tables[1:], self.conditions, self.left, strict=True)
            )
            listed = tables[0] + "".join(joins)
        return f"{listed}\nWHERE {' AND '.join(where)}" if where else listed

    def columns(self) -> list[tuple[str, str]]:
        return [(f"{a}.{c}", kind) for a, t in self.variables for c, kind in self.sources[t].columns.items()]


@st.composite
def views(draw: Any, sources: list[Source]) -> str:
    """A join along foreign keys with filters and further conditions; plain rows, groups or DISTINCT on top."""
    referencing = [s.name for s in sources if s.foreign_keys]
    joined = Joined(
        draw,
        {s.name: s for s in sources},
        [("r0", draw(st.sampled_from(referencing)))],
        [],
        [],
        draw(st.integers(0, 2)) > 0,
    )
    for _ in range(draw(st.sampled_from([1, 1, 2, 2, 3])) + (joined.has_left and draw(st.booleans()))):
        joined.grow()
    numbers = [c for c, kind in joined.columns() if kind == "int"]
    conditions = []
    if draw(st.integers(0, 2)) == 0:
        conditions.append(f"{draw(st.sampled_from(numbers))} {draw(st.sampled_from(['>=', '<>', '=']))} 1")
    if draw(st.integers(0, 4)) == 0:
        conditions.append(f"{draw(st.sampled_from(numbers))} <= {draw(st.sampled_from(numbers))}")
    if joined.has_left and draw(st.integers(0, 4)) == 0:
        conditions.append(f"coalesce({draw(st.sampled_from(numbers))}, 1) >= 1")
    source = joined.text(conditions)
    shown = draw(st.lists(st.sampled_from(joined.columns()), min_size=1, max_size=3))
    listed = ", ".join(f"{c} AS o{i}" for i, (c, _) in enumerate(shown))
    form = draw(st.sampled_from(["rows", "rows", "groups", "groups", "distinct"]))
    if form == "groups":
        key = shown[0][0]
        return (
            f"SELECT {key} AS o0, count(*) AS n, sum({draw(st.sampled_from(numbers))}) AS s, "
            f"max({draw(st.sampled_from(numbers))}) AS m\nFROM {source}\nGROUP BY {key}"
        )
    return f"SELECT {'DISTINCT ' if form == 'distinct' else ''}{listed}\nFROM {source}"


def _relation(draw: Any, table: str, sources: dict[str, Source]) -> str:
    if draw(st.integers(0, 4)) > 0:
        return f"db.{table}"
    column = draw(st.sampled_from([c for c, kind in sources[table].columns.items() if kind == "int"]))
    return f"(SELECT * FROM db.{table} WHERE {column} {draw(st.sampled_from(['< 3', '= 1', 'is not null']))})"


@st.composite
def histories(draw: Any) -> tuple[History, str]:
    """A history and what it does to the keys; trusted keys hold."""
    tables: list[Source] = draw(schemas())
    sql = draw(views(tables))
    kind = draw(st.sampled_from([KEYS_HOLD, KEYS_HOLD, REFERENCES_DANGLE, KEYS_REPEAT]))
    mode = draw(st.sampled_from(["verify", "verify", "off"] + ["trust"] * 2 * (kind == KEYS_HOLD)))
    initial = [draw(st.lists(rows_of(t), max_size=6)) for t in tables]
    used = [i for i, t in enumerate(tables) if f"db.{t.name} " in sql]
    batches = []
    for _ in range(draw(st.sampled_from([1, 1, 2, 2, 3]))):
        kinds = draw(st.sampled_from([OPERATIONS, OPERATIONS, ("insert",), ("update",), ("reinsert", "insert")]))
        touched = draw(st.one_of(st.just(used), st.lists(st.sampled_from(used), max_size=4)))
        batches.append([(number, draw(operations_on(tables[number], kinds))) for number in touched])
    history = History(
        tables,
        sql,
        initial,
        batches,
        rules_on=draw(st.integers(0, 5)) > 0,
        apply=draw(st.sampled_from(["log", "merge", "merge"])),
        compactions=frozenset(),
        looks=draw(st.booleans()),
        foreign_keys=mode,
        fetches=draw(st.booleans()),
    )
    return history, kind


def mend(timelines: list[Timeline]) -> None:
    """References to rows that are not there become NULL, as one more commit; a few rounds settle all chains."""
    by_name = {t.source.name: t for t in timelines}
    for timeline in timelines:
        source = timeline.source
        names = list(source.columns)
        for position, row in enumerate(list(timeline.rows)):
            mended = row
            for columns, to, _ in source.foreign_keys:
                target = by_name[to]
                places = [names.index(c) for c in columns]
                wanted = tuple(row[p] for p in places)
                if None not in wanted and wanted not in {r[: target.source.key] for r in target.rows}:
                    mended = tuple(None if i in places else v for i, v in enumerate(mended))
            if mended != row:
                timeline.version += 1
                _replace(timeline, position, mended)


def _replace(timeline: Timeline, position: int, row: Row) -> None:
    timeline.feed.append((timeline.version, "update_preimage", timeline.rows[position]))
    timeline.feed.append((timeline.version, "update_postimage", row))
    timeline.rows[position] = row
