"""Qualified queries to operators: set operations, common table expressions, views; one SELECT is in lower_select."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from dbt_ivm import names
from dbt_ivm.catalog.tables import Catalog, Table, View
from dbt_ivm.errors import Refusal, UserError
from dbt_ivm.frontend.bind import bind
from dbt_ivm.frontend.known_types import refuse_unknown_maps
from dbt_ivm.frontend.parse import inside, line_of, parse
from dbt_ivm.frontend.qualify import qualify
from dbt_ivm.frontend.settle_ties import tells_equals_apart
from dbt_ivm.operators import Field, Operator, Project, Projection, Scan, col
from dbt_ivm.storage.live_rows import without_tombstones

if TYPE_CHECKING:
    from dbt_ivm.frontend.given import Given


@dataclass(frozen=True)
class Rows:
    """A lowered query: its plan and the names users see, which may repeat column names of the plan."""

    plan: Operator
    outputs: tuple[tuple[str, str], ...]  # (name the query gives it, column of the plan)

    @property
    def visible(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.outputs)


@dataclass(frozen=True)
class Lowered:
    """The view as a plan whose columns are exactly the query's, and the tables it reads."""

    plan: Operator
    tables: tuple[Table, ...]
    notes: tuple[str, ...] = ()


@dataclass
class Lowering:
    """One pass over one query text; views inside start their own with the same counters."""

    catalog: Catalog
    relations: dict[str, Table | View] = field(default_factory=dict)
    ctes: dict[str, Rows] = field(default_factory=dict)
    taken: dict[str, int] = field(default_factory=dict)
    tables: dict[str, Table] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    numbered: dict[View, Rows] = field(default_factory=dict)  # views that tell equal rows apart: lowered once

    def fresh(self, wanted: str) -> str:
        """A column name nobody in this plan has yet."""
        count = self.taken.get(wanted, 0)
        self.taken[wanted] = count + 1
        return wanted if count == 0 else self.fresh(f"{wanted}_{count + 1}")

    def renamed(self, rows: Rows, prefix: str) -> Rows:
        """The same rows under fresh column names, for one more mention of them."""
        pairs = [(name, column, self.fresh(f"{prefix}_{name}")) for name, column in rows.outputs]
        plan = Project(rows.plan, tuple(Projection(new, col(column)) for _, column, new in pairs))
        return Rows(plan, tuple((name, new) for name, _, new in pairs))

    def relation(self, private: str, alias: str) -> Rows:
        relation = self.relations[private]
        if isinstance(relation, View):
            return self.renamed(self.view(relation), alias)
        self.tables[str(relation.name)] = relation
        fields = tuple(Field(self.fresh(f"{alias}_{c.name.lower()}"), c.name, c.type) for c in relation.columns)
        return Rows(Scan(relation.name, fields, live=relation.live), tuple((f.column.lower(), f.name) for f in fields))

    def view(self, view: View) -> Rows:
        """A catalog view as the query it stands for; its columns are found by the names recorded with it."""
        if view not in self.numbered:
            rows = self._view(view)
            if not tells_equals_apart(rows.plan):
                return rows
            self.numbered[view] = rows
        return self.numbered[view]

    def _view(self, view: View) -> Rows:
        try:
            rows = self.nested(view)
        except (Refusal, UserError) as error:
            if isinstance(error, Refusal) and error.construct != "unparsable":
                raise
            raise Refusal("view_not_expandable", f"{view.name}: {error}") from error
        produced = {name.lower(): column for name, column in rows.outputs}
        wanted = view.output or tuple(c.name for c in view.columns)
        try:
            columns = [produced[name.lower()] for name in wanted]
        except KeyError as error:
            raise Refusal("view_not_expandable", f"{view.name} has lost column {error}") from error
        return Rows(rows.plan, tuple((c.name.lower(), p) for c, p in zip(view.columns, columns, strict=True)))

    def nested(self, view: View) -> Rows:
        bound = bind(without_tombstones(parse(view.sql)), self.catalog, view.namespace)
        inner = replace(self, relations=bound.relations, ctes={})
        return inner.query(qualify(bound))

    def query(self, query: exp.Expr, given: Given | None = None) -> Rows:
        """``given``: values of a query around it, for every SELECT in it but those of WITH."""
        outer = self.ctes
        self.ctes = dict(outer)
        try:
            with_ = query.args.get("with_")
            for cte in with_.expressions if with_ is not None else ():
                self.ctes[cte.alias] = self.query(cte.this)
            return self.body(query, given)
        finally:
            self.ctes = outer

    def body(self, query: exp.Expr, given: Given | None = None) -> Rows:
        from dbt_ivm.frontend.given import per_row_limit
        from dbt_ivm.frontend.lower_limit import limited
        from dbt_ivm.frontend.lower_select import lower_select

        if given is not None and not isinstance(query, exp.Select):
            refuse_limit(query)  # it would be per row of what is given
        if isinstance(query, exp.Subquery):
            return limited(self, query, self.query(query.this, given))
        if given is not None and isinstance(query, exp.Select):
            query = per_row_limit(query)
        if isinstance(query, exp.Select):
            return lower_select(self, query, given)
        if isinstance(query, exp.SetOperation):
            return limited(self, query, self.set_operation(query, given))
        raise Refusal("unparsable", query.sql(dialect="spark")[:60], line_of(query))

    def set_operation(self, query: exp.SetOperation, given: Given | None = None) -> Rows:
        from dbt_ivm.frontend.lower_set_operation import lower_set_operation

        return lower_set_operation(self, query, given)


def refuse_limit(query: exp.Expr) -> None:
    for clause in ("limit", "offset"):
        if query.args.get(clause) is not None:
            raise Refusal("subquery", f"{clause.upper()} around a correlated subquery", line_of(query))


def lower(sql: str, catalog: Catalog) -> Lowered:
    """The query's plan; its columns are the query's output names (lower case).

    Raises:
        Refusal: no incremental rule for something in the query.
        UserError: the query is wrong.
    """
    parsed = parse(sql)
    check_output_names(parsed)
    bound = bind(parsed, catalog)
    lowering = Lowering(catalog, bound.relations)
    rows = lowering.query(qualify(bound))
    _refuse_duplicates(rows.visible)
    plan = Project(rows.plan, tuple(Projection(name, col(column)) for name, column in rows.outputs))
    refuse_unknown_maps(plan)
    return Lowered(plan, tuple(lowering.tables.values()), tuple(lowering.notes))


def check_output_names(query: exp.Query) -> None:
    """Every output column must have a name that a table can keep."""
    first = query
    while isinstance(first, exp.SetOperation):
        first = first.left
    while isinstance(first, exp.Subquery) or inside(first) is not None:
        first = inside(first) or first.this
    for position, item in enumerate(getattr(first, "selects", ()), 1):
        if isinstance(item, (exp.Alias, exp.Column, exp.Star, exp.Dot)):
            name = item.alias_or_name
            if names.is_reserved(name):
                raise UserError(
                    "IVM_RESERVED_NAME",
                    f"column {position} is called {name}; names starting with {names.PREFIX} are reserved",
                )
            continue
        if isinstance(item, exp.Aliases):
            continue
        if not item.alias:  # a function's own name would be that of its argument
            raise UserError(
                "IVM_UNNAMED_COLUMN",
                f"column {position} ({item.sql(dialect='spark')[:60]}) at line {line_of(item)} has no name; "
                "add 'as <name>'",
            )


def _refuse_duplicates(visible: tuple[str, ...]) -> None:
    double = sorted({n for n in visible if visible.count(n) > 1})
    if double:
        raise UserError("IVM_DUPLICATE_COLUMN", f"the query returns {', '.join(double)} more than once; rename one")
