"""Random views over everything that has a rule: outer joins, subqueries, windows, set operations, grouping sets."""

from __future__ import annotations

from dataclasses import dataclass

from tests.property.views import DECIMAL, LITERALS, MENTIONS, Columns, ViewBuilder

#: Mentions of relations in one view, subqueries among them.
MOST = MENTIONS + 1

OVER_FRAMES = ("sum", "count", "max", "whole", "first_value")
#: Frames that end or begin at the current row need no partition; the last is on both sides of it.
FRAMES = (
    "",
    "",
    " rows between 1 preceding and current row",
    " rows between unbounded preceding and 1 preceding",
    " rows between current row and unbounded following",
    " rows between 1 following and 2 following",
    " rows between unbounded preceding and 1 following",
)
#: How a column of ORDER BY is ordered.
DIRECTIONS = ("", "", " desc", " nulls last", " desc nulls first")


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
        sql, columns = self.whole_query(depth, wanted)
        return (self.limited(sql, columns) if self.chance(1) else sql), columns

    def whole_query(self, depth: int, wanted: list[str] | None = None) -> tuple[str, Columns]:
        """Without ORDER BY and LIMIT."""
        if depth > 0 and self.chance(3):
            left, columns = self.select(depth - 1, wanted)
            if all(t in LITERALS for _, t in columns):
                right, _ = self.select(depth - 1, [t for _, t in columns])
                word = self.pick(["UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL", "EXCEPT"])
                return f"{left}\n{word}\n{right}", columns
            return left, columns
        return self.select(depth, wanted)

    def relation(self, depth: int) -> tuple[str, Columns]:
        return self.pivoted() if depth > 0 and self.chance(1) else super().relation(depth)

    def pivoted(self) -> tuple[str, Columns]:
        """UNPIVOT of one or two columns, or PIVOT by one or two."""
        rows, _ = self.table()
        alias, table = f"r{self.aliases}", self.chance(5)
        text = f"(SELECT {{}} FROM {rows}) "
        known = [(f"{alias}.{n}", t) for n, t in next(s for s in self.sources if f".{s.name} " in rows).columns.items()]
        if table:
            kinds = [self.pick(sorted({t for _, t in known if t in LITERALS})) for _ in range(self.pick([1, 2]))]
            made = [
                [(f"c{i}{j}", self.of_type(known, t)) for i, t in enumerate(kinds)] for j in range(self.pick([2, 3]))
            ]
            listed = ", ".join(f"{e} AS {n}" for entry in made for n, e in entry)
            kept, kind = self.pick(known)
            entries = ", ".join(
                (f"({', '.join(n for n, _ in entry)})" if len(entry) > 1 else entry[0][0]) + f" AS e{j}"
                for j, entry in enumerate(made)
            )
            values = [f"v{i}" for i, _ in enumerate(kinds)]
            target = f"({', '.join(values)})" if len(values) > 1 else values[0]
            nulls = self.pick(["", "INCLUDE NULLS ", "EXCLUDE NULLS "])
            text = text.format(f"{kept} AS k, {listed}") + f"UNPIVOT {nulls}({target} FOR n IN ({entries})) AS {alias}"
            columns = [("k", kind), ("n", "string"), *zip(values, kinds, strict=True)]
            return text, [(f"{alias}.{n}", t) for n, t in columns]
        (kept, kind), (by, by_kind), (other, other_kind) = (
            self.pick([c for c in known if c[1] in LITERALS]) for _ in range(3)
        )
        number = self.of_type(known, "int")
        text = text.format(f"{kept} AS k, {by} AS b, {other} AS o, {number} AS x")
        calls = [("sum(x)", "bigint", "s"), ("count(x)", "bigint", "n"), ("max(x)", "int", "m")][: self.pick([1, 2, 3])]
        double = self.chance(5)
        values = [f"({a}, {b})" if double else a for a in self.literals(by_kind) for b in self.literals(other_kind)[:2]]
        values = list(dict.fromkeys(values))[:3]
        named = ", ".join(f"{v} AS p{i}" for i, v in enumerate(values))
        listed = ", ".join(f"{c} AS {n}" for c, _, n in calls)
        text += f"PIVOT ({listed} FOR {'(b, o)' if double else 'b'} IN ({named})) AS {alias}"
        columns = [("k", kind), *([] if double else [("o", other_kind)])]
        for i, _ in enumerate(values):
            columns += [(f"p{i}_{n}" if len(calls) > 1 else f"p{i}", t) for _, t, n in calls]
        return text, [(f"{alias}.{n}", t) for n, t in columns]

    def literals(self, kind: str) -> list[str]:
        return [*LITERALS[kind][:2], "null"] if kind != DECIMAL else ["0.50", "null"]

    def from_clause(self, depth: int) -> tuple[str, Columns]:
        text, columns = self.relation(depth)
        for _ in range(self.pick([0, 1, 1, 2])):
            if self.aliases >= MOST:
                break
            if self.chance(2) and any(t in LITERALS for _, t in columns):
                other, more = self.lateral(columns)
                text, columns = f"{text}\n{other}", columns + more
                continue
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
            if kind not in ("JOIN", "FULL JOIN") and self.aliases < MOST and self.chance(2):
                side = [c for c in self.pick([columns, more]) if c[1] in LITERALS]
                condition += f" AND {self.subquery_predicate(side)}" if side else ""
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

    def lateral(self, outer: Columns) -> tuple[str, Columns]:
        """LATERAL of rows, groups, one group, the first rows, of a window or of a union."""
        outer = [(n, t) for n, t in outer if t in LITERALS]
        text, columns = self.table()
        connected = self.chance(9)
        where = [self.connection(outer, columns)] if connected else []
        if self.chance(4):
            where.append(self.plain_predicate(columns + outer))
        condition = f" WHERE {' AND '.join(where)}" if where else ""
        value, kind = self.pick([c for c in columns if c[1] in LITERALS])
        number, beside = self.of_type(columns, "int"), self.of_type(columns + outer, "int")
        one = f"(case when {value} is null then 0 else 1 end)"
        every = ", ".join(f"{n}{self.pick(['', ' desc'])}" for n, _ in columns)
        source, made = f"FROM {text}{condition}", [("x", "int"), ("y", kind)]
        apart = ["first", "first", "window"] if connected and where[0] != "true" else []  # per row outside
        form = self.pick(["rows", "rows", "one", "one", "group", "distinct", "union", *apart])
        if form == "rows":
            query = f"SELECT {beside} AS x, {value} AS y {source}"
        elif form == "one":
            calls = [
                f"max({number})",
                f"sum({beside} + {one})",
                f"coalesce(min({number}), 3)",
                f"count({number})",
                "count(*)",
            ]
            having = f" HAVING count(*) {self.pick(['> 1', '<> 1', '= 0'])}" if self.chance(2) else ""
            query = f"SELECT {self.pick(calls)} AS x, {self.pick(calls)} AS y {source}{having}"
            made = [("x", "bigint"), ("y", "bigint")]
        elif form == "group":
            query = f"SELECT sum({beside} + {one}) AS x, {value} AS y {source} GROUP BY {value}"
            made = [("x", "bigint"), ("y", kind)]
        elif form == "distinct":
            query = f"SELECT DISTINCT {number} AS x, {value} AS y {source}"
        elif form == "first":
            offset = " OFFSET 1" if self.chance(2) else ""
            query = f"SELECT {number} AS x, {value} AS y {source} ORDER BY {every} LIMIT {self.pick([1, 2])}{offset}"
        elif form == "window":
            query = f"SELECT rank() OVER (ORDER BY {value}) AS x, {value} AS y {source}"
        else:
            more = self.plain_select(["int", kind], self.plain_predicate(outer))
            word = self.pick(["UNION ALL", "UNION", "EXCEPT", "INTERSECT ALL"])
            query = f"SELECT {number} AS x, {value} AS y {source} {word} {more}"
        self.aliases += 1
        alias = f"r{self.aliases}"
        shown = [(f"{alias}.{n}", t) for n, t in made]
        if self.chance(4):
            on = self.pick(["true", "true", f"{alias}.x {self.pick(['=', '<', '<>'])} {self.of_type(outer, 'int')}"])
            return f"LEFT JOIN LATERAL ({query}) AS {alias} ON {on}", shown
        return f"CROSS JOIN LATERAL ({query}) AS {alias}", shown

    def subquery_predicate(self, columns: Columns) -> str:
        form = self.pick(["exists", "not exists", "in", "not in", "or", "compare", "mark", "both"])
        if form in ("exists", "not exists"):
            return f"{form} ({self.inner(columns)[0]})"
        if form in ("in", "not in"):
            column, kind = self.pick(columns)
            return f"{column} {form} ({self.inner(columns, kind)[0]})"
        if form == "or":
            return f"({self.subquery_predicate(columns) if self.aliases < MOST else 'true'} or {self.plain_predicate(columns)})"
        if form == "both":
            return self.in_and_not_in(columns, columns, columns)
        if form == "mark":
            column, kind = self.pick(columns)
            # where it is unknown Spark has false, as a value and negated, too
            return f"coalesce({column} {self.pick(['in', 'not in'])} ({self.inner(columns, kind)[0]}), false)"
        column = self.of_type(columns, "int")
        return f"{column} {self.pick(['<', '>=', '='])} {self.scalar(columns)}"

    def in_and_not_in(self, tested: Columns, columns: Columns, outer: Columns) -> str:
        """The same IN as it is and negated, in one condition."""
        value, kind = self.pick(tested)
        query = self.inner(outer, kind)[0]
        negated = self.pick([f"{value} not in ({query})", f"not ({value} in ({query}))"])
        forms = ["{p} or ({n} and {x})", "({n} and {x}) or {p}", "{n} and ({p} or {x})"]
        return f"({self.pick(forms).format(p=f'{value} in ({query})', n=negated, x=self.plain_predicate(columns))})"

    def in_or_out(self, tested: Columns, outer: Columns) -> str:
        value, kind = self.pick(tested)
        query = self.inner(outer, kind)[0]
        first, second = self.pick([("in", "not in"), ("not in", "in")])
        return f"(case when {value} {first} ({query}) then 'a' when {value} {second} ({query}) then 'b' else '' end)"

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
        if self.aliases < MOST and self.chance(2):  # over two levels
            nested, more = self.table()
            far = f"{self.connection(outer, more)} AND {self.connection(columns, more)}"
            where.append(f"{self.pick(['', 'not '])}exists (SELECT 1 FROM {nested} WHERE {far})")
        elif self.chance(1):
            branch = self.plain_select([kind or "int"], self.plain_predicate(outer))
            word = self.pick(["UNION ALL", "EXCEPT", "INTERSECT"])
            condition = f" WHERE {' AND '.join(where)}" if where else ""
            text = f"{text}{condition} {word} {branch}"
            return f"SELECT {value} AS x FROM {text}", [("x", kind or "int")]
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
        if where and "true" not in where and self.chance(3):
            every = ", ".join(f"{n}{self.pick(['', ' desc'])}" for n, _ in columns)
            return f"(SELECT {argument} AS x FROM {text}{where} ORDER BY {every} LIMIT 1)"
        if where and self.chance(2):
            call = f"count(*) FILTER (WHERE {self.plain_predicate(columns)})"
        return f"(SELECT {call} AS x FROM {text}{where})"

    def select_without_subqueries(self, wanted: list[str]) -> tuple[str, Columns]:
        made = [(f"o{i}", t) for i, t in enumerate(wanted)]
        sql = self.plain_select(wanted)
        return self.limited(sql, made) if self.chance(2) else sql, made

    def plain_select(self, wanted: list[str], condition: str = "") -> str:
        text, columns = self.table()
        items = ", ".join(f"{self.of_type(columns, t)} AS o{i}" for i, t in enumerate(wanted))
        return f"SELECT {items} FROM {text}" + (f" WHERE {condition}" if condition else "")

    # ---------------------------------------------------------------------------- windows, grouping sets

    def limited(self, sql: str, columns: Columns) -> str:
        """The first rows in an order of all columns: no other answer is right."""
        if not all(t in LITERALS or t == "bigint" for _, t in columns):
            return sql
        some = columns[self.pick(list(range(len(columns)))) :] + columns  # a column that comes again orders nothing
        order = ", ".join(f"{n}{self.pick(list(DIRECTIONS))}" for n, _ in dict(some).items())
        return f"{sql}\nORDER BY {order} {self.pick(['LIMIT 1', 'LIMIT 2', 'LIMIT 3', 'LIMIT 2 OFFSET 1', 'OFFSET 1'])}"

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
        if self.chance(1) and self.aliases < MOST:
            items.append((self.in_or_out(usable, usable), "string"))
        listed = ", ".join(f"{e} AS o{i}" for i, (e, _) in enumerate(items))
        qualify = (
            f"\nQUALIFY {self.window(usable, rank=True)[0]} <= {self.pick(['1', '2'])}"
            if self.qualify and self.chance(4)
            else ""
        )
        return f"SELECT {listed}\nFROM {text}{where}{qualify}", [(f"o{i}", t) for i, (_, t) in enumerate(items)]

    def window(self, columns: Columns, rank: bool = False) -> tuple[str, str]:
        """A function over a partition, or over everything in an order.

        At most one per SELECT depends on the place of a row among equal ones: which values of two such functions go
        together is not told by SQL.
        """
        parts = ", ".join(self.pick(columns)[0] for _ in range(self.pick([1, 1, 2])))
        partition = "" if self.chance(3) else f"PARTITION BY {parts}"
        every = ", ".join(f"{n}{self.pick(list(DIRECTIONS))}" for n, _ in columns)
        some = f"{self.pick(columns)[0]}{self.pick(list(DIRECTIONS))}"
        placed = [] if self.by_place else ["row_number"] if rank else ["row_number", "lag", "lead"]
        form = self.pick(["rank", "dense_rank", *placed, *([] if rank else OVER_FRAMES)])
        self.by_place |= form in placed
        if form in ("rank", "dense_rank"):
            return f"{form}() OVER ({partition} ORDER BY {some})", "int"
        if form == "row_number":
            return f"row_number() OVER ({partition} ORDER BY {every})", "int"
        argument, kind = self.pick(columns)
        if form in ("lag", "lead", "first_value"):
            return f"{form}({argument}) OVER ({partition} ORDER BY {every})", kind
        if form == "whole":
            return f"count(*) OVER (PARTITION BY {parts})", "bigint"
        if form == "count":
            return f"count({argument}) OVER ({partition} ORDER BY {some})", "bigint"
        frame = "" if self.by_place else self.pick(list(FRAMES))
        partition = f"PARTITION BY {parts}" if frame == FRAMES[-1] else partition
        self.by_place |= bool(frame)
        if form == "sum" and any(t == "int" for _, t in columns):
            number = self.pick([n for n, t in columns if t == "int"])
            return f"sum({number}) OVER ({partition} ORDER BY {every}{frame})", "bigint"
        return f"max({argument}) OVER ({partition} ORDER BY {every}{frame})", kind

    def of_groups(self, columns: Columns, keys: Columns) -> tuple[Columns, Columns]:
        """What of groups IN may test, and what its query may use."""
        call, kind = self.measure(columns)
        kind = "int" if kind == "bigint" else kind
        tested = [k for k in [*keys, (call, kind)] if k[1] in LITERALS]
        return tested or [("count(*)", "int")], [k for k in keys if k in columns and k[1] in LITERALS]

    def more_of_groups(self, columns: Columns, keys: Columns) -> Columns:
        if self.plain or not self.qualify or self.aliases >= MOST or not self.chance(2):
            return []  # of a select list of groups on Spark itself nothing is known here
        return [(self.in_or_out(*self.of_groups(columns, keys)), "string")]

    def having(self, columns: Columns, keys: Columns) -> str:
        if self.plain or self.aliases >= MOST or not self.chance(5):
            return super().having(columns, keys)
        tested, outer = self.of_groups(columns, keys)
        if self.chance(4):
            return self.in_and_not_in(tested, outer, outer)
        value, kind = self.pick(tested)
        return f"{value} {self.pick(['in', 'not in', 'not in'])} ({self.inner(outer, kind)[0]})"

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
