"""JOIN … USING and NATURAL JOIN as Spark reads them.

The parser's library turns USING into ON, comparing with the first table that has the column, and a mention of the
column into COALESCE of all tables.  Spark compares with the column that the joins so far give, and that is

    INNER, LEFT, SEMI, ANTI     the left one
    RIGHT                       the right one
    FULL                        COALESCE(left, right)

``a FULL JOIN b USING (k) FULL JOIN c USING (k)``:  ON a.k = c.k  →  ON COALESCE(a.k, b.k) = c.k
"""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm.nodes import conjuncts

USING = "ivm_using"
WRITTEN = "ivm_written"


def mark_joins(query: exp.Query) -> None:
    """Before names are resolved: which joins share columns, and which COALESCE the query has itself."""
    for join in query.find_all(exp.Join):
        if join.args.get("using") or join.method.upper() == "NATURAL":
            join.meta[USING] = True
    for call in query.find_all(exp.Coalesce):
        call.meta[WRITTEN] = True


def settle_joined_columns(query: exp.Query) -> None:
    for select in list(query.find_all(exp.Select)):
        joins = select.args.get("joins") or []
        if any(j.meta.get(USING) for j in joins):
            _settle(select, joins)


def _settle(select: exp.Select, joins: list[exp.Join]) -> None:
    given: dict[str, exp.Expr] = {}  # the value of each shared column
    tables: dict[str, list[str]] = {}  # and the tables it is of
    for join in joins:
        if not join.meta.get(USING) or join.args.get("on") is None:
            continue
        conditions = []
        for shared in conjuncts(join.args["on"]):
            left, right = shared.this, shared.expression
            name = right.name
            left = given.get(name, left)
            conditions.append(exp.EQ(this=left.copy(), expression=right.copy()))
            side, kind = join.side.upper(), join.kind.upper()
            of = tables.setdefault(name, [shared.this.table])
            if kind in ("SEMI", "ANTI"):
                given.setdefault(name, left)
                continue
            of.append(right.table)
            if side == "RIGHT":
                given[name] = right
            elif side == "FULL":
                more = [e.copy() for e in (left.expressions if isinstance(left, exp.Coalesce) else [])]
                first = left.this if isinstance(left, exp.Coalesce) else left
                given[name] = exp.Coalesce(this=first.copy(), expressions=[*more, right.copy()])
            else:
                given[name] = left
        join.set("on", exp.and_(*conditions))
        join.args["on"].meta[USING] = True
    for column in list(select.find_all(exp.Column)):  # names in HAVING stay as they were
        if not column.table and column.name in given and column.parent_select is select:
            column.replace(given[column.name].copy())
    for call in list(select.find_all(exp.Coalesce)):
        parts = [call.this, *call.expressions]
        if call.meta.get(WRITTEN) or call.find_ancestor(exp.Join) is not None or call.parent_select is not select:
            continue
        name = call.this.name if isinstance(call.this, exp.Column) else ""
        if name in given and [(p.table, p.name) for p in parts] == [(t, name) for t in tables[name]]:
            call.replace(given[name].copy())
