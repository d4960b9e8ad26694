"""Random views over everything that has a rule: outer joins, subqueries, windows, set operations, grouping sets."""

from __future__ import annotations

from dataclasses import dataclass

from tests.property.views import LITERALS, MENTIONS, Columns, ViewBuilder

#: Mentions of relations in one view, subqueries among them.
MOST = MENTIONS + 1

OVER_FRAMES = ("sum", "count", "max", "whole", "first_value")
FRAMES = ("", "", " rows between 1 preceding and current row", " rows between unbounded preceding and 1 following")


@dataclass
class AllSql(ViewBuilder):
    """Draws one view of up to three levels; ``plain`` predicates have no subqueries."""

    plain: bool = False
    qualify: bool = True
    by_place: bool = False

    def view(self) -> str:
        sql, _ = self.query(self.pick([0, 0, 1, 1, 2, 3]))
        if self.ctes:
            listed = ",\n".join(f"{name} AS (\n{text}\n)" for name, text, _ in self.ctes)
            return f"WITH {listed}\n{sql}"
        return sql

    def query(self, depth: int, wanted: list[str] | None = None) -> tuple[str, Columns]:
        if depth > 0 and self.chance(3):
            left, columns = self.select(depth - 1, wanted)
            if all(t in LITERALS for _, t in columns):
                right, _ = self.select(depth - 1, [t for _, t in columns])
                word = self.pick(["UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL", "EXCEPT"])
                return f"{left}\n{word}\n{right}", columns
            return left, columns
        return self.select(depth, wanted)

    def from_clause(self, depth: int) -> tuple[str, Columns]:
        text, columns = self.relation(depth)
        for _ in range(self.pick([0, 1, 1, 2])):
            if self.aliases >= MOST:
                break
            other, more = self.relation(depth - 1)
            kind = self.pick(
                ["JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]
            )
            condition: str | None = (
                self.join_condition(columns, more) if kind == "JOIN" else self.plain_condition(columns, more)
            )
            if kind == "FULL JOIN":  # DuckDB has no other full joins
                condition = self.equality(columns, more)
            if condition is None:
                text += f"\nCROSS JOIN {other}"
                columns = columns + more
                continue
            text += f"\n{kind} {other} ON {condition}"
            columns = columns if kind in ("LEFT SEMI JOIN", "LEFT ANTI JOIN") else columns + more
        return text, columns

    def plain_condition(self, left: Columns, right: Columns) -> str:
        """Of outer joins: without subqueries."""
        pairs = [(a, b) for a, s in left for b, t in right if s == t]
        if not pairs:
            return self.plain_predicate(left + right)
        a, b = self.pick(pairs)
        condition = f"{a} {self.pick(['=', '=', '=', '<=>', '<', '<>'])} {b}"
        return f"{condition} AND {self.plain_predicate(left + right)}" if self.chance(3) else condition

    def equality(self, left: Columns, right: Columns) -> str | None:
        pairs = [(a, b) for a, s in left for b, t in right if s == t]
        if not pairs:
            return None
        a, b = self.pick(pairs)
        return f"{a} = {b}"

    # ---------------------------------------------------------------------------- subqueries

    def predicate(self, columns: Columns) -> str:
        usable = [(n, t) for n, t in columns if t in LITERALS]
        if not self.plain and self.aliases < MOST and usable and self.chance(3):
            return self.subquery_predicate(usable)
        return super().predicate(columns)

    def plain_predicate(self, columns: Columns) -> str:
        before, self.plain = self.plain, True
        try:
            return super().predicate(columns)
        finally:
            self.plain = before

    def subquery_predicate(self, columns: Columns) -> str:
        form = self.pick(["exists", "not exists", "in", "not in", "or", "compare", "mark"])
        if form in ("exists", "not exists"):
            return f"{form} ({self.inner(columns)[0]})"
        if form in ("in", "not in"):
            column, kind = self.pick(columns)
            return f"{column} {form} ({self.inner(columns, kind)[0]})"
        if form == "or":
            return f"({self.subquery_predicate(columns) if self.aliases < MOST else 'true'} or {self.plain_predicate(columns)})"
        if form == "mark":
            column, kind = self.pick(columns)
            return f"coalesce({column} in ({self.inner(columns, kind)[0]}), {self.pick(['true', 'false'])})"
        column = self.of_type(columns, "int")
        return f"{column} {self.pick(['<', '>=', '='])} {self.scalar(columns)}"

    def inner(self, outer: Columns, kind: str | None = None) -> tuple[str, Columns]:
        """The query of EXISTS or IN; it may use columns of the query around it."""
        if self.chance(2):
            return self.select_without_subqueries([kind or "int"])
        text, columns = self.table()
        where = []
        if self.chance(7):
            where.append(self.connection(outer, columns))
        if self.chance(4):
            where.append(self.plain_predicate(columns))
        value = self.of_type(columns, kind or "int")
        group = ""
        if self.chance(2) and kind != "int":
            known = [n for n, _ in columns]
            value = self.pick(known) if kind is None else value
            group = (
                f" GROUP BY {value} HAVING count(*) > 1"
                if "." in value and value[0] == "r" and " " not in value
                else ""
            )
        condition = f" WHERE {' AND '.join(where)}" if where else ""
        return f"SELECT {value} AS x FROM {text}{condition}{group}", [("x", kind or "int")]

    def connection(self, outer: Columns, inner: Columns) -> str:
        pairs = [(a, b) for a, s in outer for b, t in inner if s == t and t in LITERALS]
        if not pairs:
            return "true"
        a, b = self.pick(pairs)
        first = f"{b} {self.pick(['=', '=', '=', '<', '<>', '<=>'])} {a}"
        if self.chance(2):
            a, b = self.pick(pairs)
            first += f" AND {a} {self.pick(['=', '>='])} {b}"
        return first

    def table(self) -> tuple[str, Columns]:
        self.aliases += 1
        alias, source = f"r{self.aliases}", self.pick(self.sources)
        return f"db.{source.name} AS {alias}", [(f"{alias}.{n}", t) for n, t in source.columns.items()]

    def scalar(self, outer: Columns) -> str:
        """An integer; NULL or 0 when there is no row."""
        text, columns = self.table()
        argument = self.of_type(columns, "int")
        call = self.pick(
            [
                f"max({argument})",
                f"min({argument})",
                "count(*)",
                f"coalesce(max({argument}), 1)",
                f"count({argument}) + 1",
            ]
        )
        where = f" WHERE {self.connection(outer, columns)}" if self.chance(7) else ""
        return f"(SELECT {call} AS x FROM {text}{where})"

    def select_without_subqueries(self, wanted: list[str]) -> tuple[str, Columns]:
        text, columns = self.table()
        items = ", ".join(f"{self.of_type(columns, t)} AS o{i}" for i, t in enumerate(wanted))
        return f"SELECT {items} FROM {text}", [(f"o{i}", t) for i, t in enumerate(wanted)]

    # ---------------------------------------------------------------------------- windows, grouping sets

    def select(self, depth: int, wanted: list[str] | None = None) -> tuple[str, Columns]:
        if wanted is None and self.chance(3):
            return self.windowed(depth)
        return super().select(depth, wanted)

    def windowed(self, depth: int) -> tuple[str, Columns]:
        text, columns = self.from_clause(depth)
        usable = [(n, t) for n, t in columns if t in LITERALS]
        if not usable:
            return super().select(depth)
        where = f"\nWHERE {self.predicate(columns)}" if self.chance(3) else ""
        kept = [self.pick(usable) for _ in range(self.pick([1, 2]))]
        self.by_place = False
        calls = [self.window(usable) for _ in range(self.pick([1, 1, 2]))]
        items = [*kept, *calls]
        if self.chance(2) and self.aliases < MOST:
            items.append((self.scalar(usable), "int"))
        listed = ", ".join(f"{e} AS o{i}" for i, (e, _) in enumerate(items))
        qualify = (
            f"\nQUALIFY {self.window(usable, rank=True)[0]} <= {self.pick(['1', '2'])}"
            if self.qualify and self.chance(4)
            else ""
        )
        return f"SELECT {listed}\nFROM {text}{where}{qualify}", [(f"o{i}", t) for i, (_, t) in enumerate(items)]

    def window(self, columns: Columns, rank: bool = False) -> tuple[str, str]:
        """A function over a partition.

        At most one per SELECT depends on the place of a row among equal ones: which values of two such functions go
        together is not told by SQL.
        """
        partition = ", ".join(self.pick(columns)[0] for _ in range(self.pick([1, 1, 2])))
        every = ", ".join(f"{n}{self.pick(['', ' desc'])}" for n, _ in columns)
        some = self.pick(columns)[0]
        placed = [] if self.by_place else ["row_number"] if rank else ["row_number", "lag"]
        form = self.pick(["rank", "dense_rank", *placed, *([] if rank else OVER_FRAMES)])
        self.by_place |= form in placed
        if form in ("rank", "dense_rank"):
            return f"{form}() OVER (PARTITION BY {partition} ORDER BY {some})", "int"
        if form == "row_number":
            return f"row_number() OVER (PARTITION BY {partition} ORDER BY {every})", "int"
        argument, kind = self.pick(columns)
        if form in ("lag", "first_value"):
            return f"{form}({argument}) OVER (PARTITION BY {partition} ORDER BY {every})", kind
        if form == "whole":
            return f"count(*) OVER (PARTITION BY {partition})", "bigint"
        if form == "count":
            return f"count({argument}) OVER (PARTITION BY {partition} ORDER BY {some})", "bigint"
        frame = "" if self.by_place else self.pick(list(FRAMES))
        self.by_place |= bool(frame)
        if form == "sum" and any(t == "int" for _, t in columns):
            number = self.pick([n for n, t in columns if t == "int"])
            return f"sum({number}) OVER (PARTITION BY {partition} ORDER BY {every}{frame})", "bigint"
        return f"max({argument}) OVER (PARTITION BY {partition} ORDER BY {every}{frame})", kind

    def aggregate(self, source: str, columns: Columns, is_global: bool) -> tuple[str, Columns]:
        usable = [n for n, t in columns if t in LITERALS]
        if is_global or len(usable) < 2 or not self.chance(3):
            return super().aggregate(source, columns, is_global)
        a, b = usable[0], usable[-1]
        # not the empty set: of no rows DuckDB makes a row of it, Spark does not
        sets = self.pick([f"{a}, CUBE ({b})", f"GROUPING SETS (({a}), ({b}))", f"{a}, ROLLUP ({b})"])
        call, kind = self.measure(columns)
        more = ", grouping(" + b + ") AS o3" if self.chance(5) else ""
        kinds = dict(columns)
        names = [("o0", kinds[a]), ("o1", kinds[b]), ("o2", kind), *([("o3", "tinyint")] if more else [])]
        return f"SELECT {a} AS o0, {b} AS o1, {call} AS o2{more}\nFROM {source}\nGROUP BY {sets}", names
