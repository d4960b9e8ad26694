"""What the result of a query without a plan depends on besides its tables: clocks, chance, what cannot be looked into.

A refusal names the first construct without a rule; behind it may be a clock that nobody asked for.  So the whole text
is searched, and the texts of the views it reads.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from dbt_ivm.catalog.clock import clock_table
from dbt_ivm.catalog.tables import Catalog, Table, View
from dbt_ivm.errors import Refusal, UserError
from dbt_ivm.frontend.bind import table_names
from dbt_ivm.frontend.clocks import clock_of
from dbt_ivm.frontend.parse import line_of, parse
from dbt_ivm.frontend.scope import refused_construct

#: Constructs whose result may change although no source did.
ALWAYS_DIFFERENT = frozenset(
    (
        "time_function", "non_deterministic", "sample", "unparsable", "lateral", "unknown_function",
        "view_not_expandable",
    )
)  # fmt: skip

#: Table functions of their arguments alone.
OF_ARGUMENTS = frozenset(("range", "explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "stack"))


def unsteady(sql: str, catalog: Catalog) -> Refusal | None:
    """The first construct that may answer differently each time, in the text or in a view that it reads."""
    for query, view in _queries(sql, catalog):
        if isinstance(query, Refusal):
            return query if view is None else Refusal("view_not_expandable", f"{view.name}: {query.reason}")
        for node in query.walk():
            construct = _construct(node)
            if construct in ALWAYS_DIFFERENT:
                return Refusal(construct, node.sql(dialect="spark")[:60], line_of(node))
    return None


def clocks(sql: str, catalog: Catalog) -> tuple[Table, ...]:
    """The clocks that the text, or a view that it reads, asks for, as sources."""
    asked = (clock_of(n) for query, _ in _queries(sql, catalog) if isinstance(query, exp.Query) for n in query.walk())
    return tuple(clock_table(kind) for kind in sorted(set(asked) - {""}))


def _queries(sql: str, catalog: Catalog) -> Iterator[tuple[exp.Query | Refusal, View | None]]:
    """The text and the views it reads, parsed; a refusal where that is not possible."""
    yield _parsed(sql, catalog, ()), None
    for view in catalog.relations:
        if isinstance(view, View):
            yield _parsed(view.sql, catalog, view.namespace), view


def _parsed(sql: str, catalog: Catalog, namespace: tuple[str, ...]) -> exp.Query | Refusal:
    try:
        query = parse(sql)
        for name, _ in table_names(query):
            catalog.find(name.within(namespace))
    except Refusal as refusal:
        return refusal
    except UserError as error:
        return Refusal("unparsable", str(error))
    return query


def _construct(node: exp.Expr) -> str:
    if isinstance(node, exp.TableSample):
        return "sample"
    if isinstance(node, exp.Table):
        called = node.this.name.lower() if isinstance(node.this, (exp.Anonymous, exp.Func)) else ""
        return "lateral" if called and called not in OF_ARGUMENTS else ""
    if isinstance(node, (exp.Window, exp.Query)) or clock_of(node):
        return ""
    construct = refused_construct(node)
    return "" if construct == "lateral" else construct  # generators are of their arguments
