"""PIVOT and UNPIVOT as Spark defines them, spelled out for DuckDB, whose own differ.

    s UNPIVOT (v FOR n IN (a AS 'x', b AS 'y'))  →  (SELECT * EXCLUDE (a, b), 'x' AS n, a AS v FROM s WHERE … UNION ALL …)
    s PIVOT (sum(x) FOR k IN (1 AS p))           →  (SELECT * EXCLUDE (x, k), CASE WHEN … GROUP BY ALL)

Every entry has an alias, and ``s`` is a query in parentheses.
"""

from __future__ import annotations

from sqlglot import exp


def spell_out(pivot: exp.Pivot) -> None:
    """Replace the source of the pivot, which must be a subquery, by a plain one."""
    source = pivot.parent
    assert isinstance(source, exp.Subquery) and isinstance(source.this, exp.Query)
    (field,) = pivot.args["fields"]
    alias = pivot.alias or source.alias
    inner = f"({source.this.sql(dialect='duckdb')}) AS s"
    text = _unpivot(pivot, field, inner) if pivot.args.get("unpivot") else _pivot(pivot, field, inner)
    source.set("this", exp.maybe_parse(text, dialect="duckdb"))
    source.set("pivots", None)
    source.set("alias", exp.TableAlias(this=exp.to_identifier(alias)))


def _names(node: exp.Expr) -> list[str]:
    return [n.name for n in (node.expressions if isinstance(node, exp.Tuple) else [node])]


def _unpivot(pivot: exp.Pivot, field: exp.In, inner: str) -> str:
    values = _names(pivot.expressions[0])
    used = dict.fromkeys(n for e in field.expressions for n in _names(e.this))
    branches = []
    for entry in field.expressions:
        columns = _names(entry.this)
        shown = ", ".join(f"{c} AS {v}" for c, v in zip(columns, values, strict=True))
        present = " OR ".join(f"{c} IS NOT NULL" for c in columns)
        where = "" if pivot.args.get("include_nulls") else f" WHERE {present}"
        branches.append(
            f"SELECT * EXCLUDE ({', '.join(used)}), '{entry.args['alias'].name}' AS {field.this.name}, {shown} "
            f"FROM {inner}{where}"
        )
    return " UNION ALL ".join(branches)


def _pivot(pivot: exp.Pivot, field: exp.In, inner: str) -> str:
    tested = _names(field.this)
    used = dict.fromkeys([*tested, *(c.name for e in pivot.expressions for c in e.find_all(exp.Column))])
    cells = []
    for entry in field.expressions:
        parts = entry.this.expressions if isinstance(entry.this, exp.Tuple) else [entry.this]
        same = " AND ".join(f"{t} IS NOT DISTINCT FROM {p.sql()}" for t, p in zip(tested, parts, strict=True))
        for call in pivot.expressions:
            name = entry.args["alias"].name + (f"_{call.alias}" if len(pivot.expressions) > 1 else "")
            value = f"{call.unalias().sql(dialect='duckdb')} FILTER (WHERE {same})"
            cells.append(f"CASE WHEN count(*) FILTER (WHERE {same}) > 0 THEN {value} END AS {name}")
    return f"SELECT * EXCLUDE ({', '.join(used)}), {', '.join(cells)} FROM {inner} GROUP BY ALL"
