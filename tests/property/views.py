"""Random views over the supported operators, as Spark SQL text with typed columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from tests.property.sources import Source

DECIMAL = "decimal(9,2)"
LITERALS = {"int": ["0", "1", "2", "3"], "string": ["'a'", "'b'", "''"], DECIMAL: ["0.50", "1.25"]}

MENTIONS = 4  # of relations in one view; statements grow fast with them

Columns = list[tuple[str, str]]  # name and type


@dataclass
class ViewBuilder:
    """Draws one view; ``ctes`` are shared between the places that mention them."""

    draw: Any
    sources: list[Source]
    ctes: list[tuple[str, str, Columns]] = field(default_factory=list)
    aliases: int = 0

    def pick(self, options: list[Any]) -> Any:
        return self.draw(st.sampled_from(options))

    def chance(self, of_ten: int) -> bool:
        return bool(self.draw(st.integers(1, 10)) > 10 - of_ten)

    def view(self) -> str:
        sql, _ = self.query(self.pick([0, 0, 1, 1, 2]))
        if self.ctes:
            listed = ",\n".join(f"{name} AS (\n{text}\n)" for name, text, _ in self.ctes)
            return f"WITH {listed}\n{sql}"
        return sql

    def query(self, depth: int, wanted: list[str] | None = None) -> tuple[str, Columns]:
        if depth > 0 and self.chance(2):
            left, columns = self.select(depth - 1, wanted)
            right, _ = self.select(depth - 1, [t for _, t in columns])
            return f"{left}\n{self.pick(['UNION ALL', 'UNION ALL', 'UNION'])}\n{right}", columns
        return self.select(depth, wanted)

    # FROM

    def relation(self, depth: int) -> tuple[str, Columns]:
        """A FROM item with its alias; columns are qualified."""
        self.aliases += 1
        alias = f"r{self.aliases}"
        kind = (
            self.pick(["table", "table", "derived", "cte", "cte", "constant"])
            if depth > 0 and self.aliases <= MENTIONS
            else "table"
        )
        if kind == "table":
            source = self.pick(self.sources)
            return f"db.{source.name} AS {alias}", [(f"{alias}.{n}", t) for n, t in source.columns.items()]
        if kind == "derived":
            sql, columns = self.query(depth - 1)
            return f"(\n{sql}\n) AS {alias}", [(f"{alias}.{n}", t) for n, t in columns]
        if kind == "constant":
            return f"(SELECT {self.literal('int')} AS k, {self.literal('string')} AS s) AS {alias}", [
                (f"{alias}.k", "int"),
                (f"{alias}.s", "string"),
            ]
        if not self.ctes or self.chance(3):
            sql, columns = self.query(depth - 1)
            self.ctes.append((f"w{len(self.ctes)}", sql, columns))
        name, _, columns = self.pick(self.ctes)
        return f"{name} AS {alias}", [(f"{alias}.{n}", t) for n, t in columns]

    def from_clause(self, depth: int) -> tuple[str, Columns]:
        text, columns = self.relation(depth)
        for _ in range(self.pick([0, 0, 1, 1, 2])):
            if self.aliases >= MENTIONS:
                break
            other, more = self.relation(depth - 1)
            if self.chance(1):
                text += f"\nCROSS JOIN {other}"
                columns = columns + more
                continue
            text += f"\nJOIN {other} ON {self.join_condition(columns, more)}"
            columns = columns + more
        return text, columns

    def join_condition(self, left: Columns, right: Columns) -> str:
        pairs = [(a, b) for a, s in left for b, t in right if s == t]
        if not pairs:
            return "true"
        a, b = self.pick(pairs)
        condition = f"{a} {self.pick(['=', '=', '=', '=', '<=>', '<', '<>'])} {b}"
        if self.chance(2):
            condition += f" AND {self.predicate(left + right)}"
        return condition

    # expressions

    def of_type(self, columns: Columns, kind: str) -> str:
        """An expression of the type: a column where there is one."""
        known = [n for n, t in columns if t == kind]
        if not known or self.chance(1):
            return self.literal(kind)
        column = str(self.pick(known))
        if self.chance(7):
            return column
        if kind == "int":
            other = self.pick([*known, "1", "2"])
            forms = (
                "{a} + {b}",
                "{a} - {b}",
                "{a} * 2",
                "-{a}",
                "coalesce({a}, {b})",
                "case when {a} > 1 then {b} else {a} end",
            )
            return str(self.pick(list(forms))).format(a=column, b=other)
        if kind == "string":
            return str(self.pick(["upper({a})", "concat({a}, 'x')", "coalesce({a}, 'z')"])).format(a=column)
        return f"coalesce({column}, 0.50)"

    def literal(self, kind: str) -> str:
        if kind == "double":
            return "cast(1 as double)"
        if kind == DECIMAL:
            return f"cast({self.pick(LITERALS[DECIMAL])} as {DECIMAL})"
        return str(self.pick(LITERALS[kind] if kind in LITERALS else LITERALS["int"]))

    def predicate(self, columns: Columns) -> str:
        usable = [(n, t) for n, t in columns if t in LITERALS]
        if not usable:
            return "true"
        column, kind = self.pick(usable)
        literals = LITERALS[kind]
        form = self.pick(["compare", "compare", "null", "in", "column", "not", "or", "between"])
        if form == "compare":
            return f"{column} {self.pick(['=', '<', '>=', '<>', '<=>'])} {self.pick(literals)}"
        if form == "null":
            return f"{column} is {self.pick(['', 'not '])}null"
        if form == "in":
            return f"{column} in ({literals[0]}, {literals[1]})"
        if form == "between":
            return f"{column} between {literals[0]} and {literals[-1]}"
        if form == "column":
            other = self.pick([n for n, t in usable if t == kind])
            return f"{column} {self.pick(['=', '<', '<>'])} {other}"
        if form == "not":
            return f"not ({self.predicate(columns)})"
        return f"({self.predicate(columns)} or {column} = {literals[1]})"

    # SELECT

    def select(self, depth: int, wanted: list[str] | None = None) -> tuple[str, Columns]:
        if wanted is not None and self.chance(1):  # a constant row, as a branch of a union
            constants = [f"{self.literal(t)} AS o{i}" for i, t in enumerate(wanted)]
            return f"SELECT {', '.join(constants)}", [(f"o{i}", t) for i, t in enumerate(wanted)]
        text, columns = self.from_clause(depth)
        where = f"\nWHERE {self.predicate(columns)}" if self.chance(4) else ""
        form = self.pick(["plain", "plain", "aggregate", "aggregate", "distinct", "global"])
        if form in ("aggregate", "global") and wanted is None:
            return self.aggregate(text + where, columns, is_global=form == "global")
        distinct = "DISTINCT " if form == "distinct" else ""
        kinds = wanted or self.draw(
            st.lists(
                st.sampled_from(sorted({t for _, t in columns if t in LITERALS} or {"int"})), min_size=1, max_size=3
            )
        )
        items = [(self.of_type(columns, kind), kind) for kind in kinds]
        listed = ", ".join(f"{e} AS o{i}" for i, (e, _) in enumerate(items))
        return f"SELECT {distinct}{listed}\nFROM {text}{where}", [(f"o{i}", t) for i, (_, t) in enumerate(items)]

    def aggregate(self, source: str, columns: Columns, is_global: bool) -> tuple[str, Columns]:
        keys: list[tuple[str, str]] = []
        if not is_global:
            for _ in range(self.pick([1, 1, 2])):
                kind = self.pick(sorted({t for _, t in columns if t in LITERALS}) or ["int"])
                key = self.of_type(columns, kind)
                keys.append((f"coalesce({key}, 7)" if key.isdigit() else key, kind))  # a bare number is a position
        measures = [self.measure(columns) for _ in range(self.pick([1, 1, 2, 3]))]
        shown = [k for k in keys if self.chance(8)]
        items = [*shown, *measures]
        if self.chance(2):
            items.append((f"{measures[0][0]} + 1", "number") if measures[0][1] in ("bigint", "int") else measures[0])
        items += self.more_of_groups(columns, keys)
        listed = ", ".join(f"{e} AS o{i}" for i, (e, _) in enumerate(items))
        group = f"\nGROUP BY {', '.join(k for k, _ in keys)}" if keys else ""
        having = f"\nHAVING {self.having(columns, keys)}" if self.chance(2) else ""
        names = [(f"o{i}", "int" if t == "bigint" and self.chance(5) else t) for i, (_, t) in enumerate(items)]
        return f"SELECT {listed}\nFROM {source}{group}{having}", names

    def more_of_groups(self, columns: Columns, keys: Columns) -> Columns:
        """Further items of the select list of groups with these keys."""
        return []

    def having(self, columns: Columns, keys: Columns) -> str:
        call, kind = self.measure(columns)
        if kind in ("bigint", "int"):
            return f"{call} {self.pick(['>', '<=', '='])} {self.pick(['1', '2'])}"
        return f"{call} is not null" if self.chance(5) else "count(*) > 1"

    def measure(self, columns: Columns) -> tuple[str, str]:
        filtered = f" FILTER (WHERE {self.predicate(columns)})" if self.chance(2) else ""
        usable = [(n, t) for n, t in columns if t in LITERALS]
        form = self.pick(["count(*)", "count", "sum", "sum", "avg", "min", "max", "min", "max", "count distinct"])
        if form == "count(*)" or not usable:
            return f"count(*){filtered}", "bigint"
        if form in ("sum", "avg"):
            kinds = sorted({t for _, t in usable if t != "string"})
            if not kinds:
                return f"count(*){filtered}", "bigint"
            kind = self.pick(kinds)
            result = "double" if form == "avg" else "bigint" if kind == "int" else "number"
            return f"{form}({self.of_type(columns, kind)}){filtered}", result
        kind = self.pick(sorted({t for _, t in usable}))
        argument = self.of_type(columns, kind)
        if form == "count distinct":
            return f"count(DISTINCT {argument}){filtered}", "bigint"
        return f"{form}({argument}){filtered}", "bigint" if form == "count" else kind
