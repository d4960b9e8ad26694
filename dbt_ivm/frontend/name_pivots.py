"""PIVOT and UNPIVOT with every name that Spark gives written out, before names lose their case.

    UNPIVOT (v FOR n IN (Aa, (b, c)))             →  … IN (Aa AS 'Aa', (b, c) AS 'b_c')
    PIVOT (sum(x) AS s, max(y) FOR k IN ('p', 2)) →  columns p_s, p_max(y), 2_s, 2_max(y)

UNPIVOT shows columns as the query spells them.  A column of PIVOT is called like its value, with several aggregates
like value and aggregate; a value without an alias is called by its text, a tuple of values by ``{text, text}``.
"""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm.errors import Refusal
from dbt_ivm.frontend.parse import line_of

#: Aggregates whose calls Spark names ``name(column)``.
NAMED_PLAINLY = frozenset(("sum", "count", "min", "max", "avg"))


def name_pivots(query: exp.Query) -> None:
    for pivot in list(query.find_all(exp.Pivot)):
        _stand_alone(pivot)
        for field in pivot.args.get("fields") or ():
            if not isinstance(field, exp.In):
                continue
            if pivot.args.get("unpivot"):
                field.set("expressions", [_spelled(e) for e in field.expressions])
            else:
                _name_columns(pivot, field)


def _stand_alone(pivot: exp.Pivot) -> None:
    """A query of its own around a source with pivots that others stand beside: its columns are not theirs."""
    source, select = pivot.parent, pivot.parent_select
    if source is None or select is None or pivot is not source.args["pivots"][-1] or not select.args.get("joins"):
        return
    alias = pivot.alias or source.alias_or_name
    around = exp.Subquery(this=exp.Select(expressions=[exp.Star()]), alias=alias and exp.TableAlias(this=_name(alias)))
    source.replace(around)
    around.this.set("from_", exp.From(this=source))


def _name(text: str) -> exp.Identifier:
    return exp.to_identifier(text)


def _spelled(item: exp.Expr) -> exp.Expr:
    """One entry of UNPIVOT's list, with its name as a string; its columns are all of one relation."""
    for column in item.find_all(exp.Column):
        for qualifier in ("table", "db", "catalog"):
            column.set(qualifier, None)
    if isinstance(item, exp.PivotAlias):
        item.set("alias", exp.Literal.string(item.args["alias"].name))
        return item
    columns = item.expressions if isinstance(item, exp.Tuple) else [item]
    return exp.PivotAlias(this=item, alias=exp.Literal.string("_".join(c.name for c in columns)))


def _name_columns(pivot: exp.Pivot, field: exp.In) -> None:
    values = [_value_name(v) for v in field.expressions]
    calls = [_call_name(e) for e in pivot.expressions] if len(pivot.expressions) > 1 else [""]
    names = [f"{value}_{call}" if call else value for value in values for call in calls]
    pivot.set("columns", [exp.to_identifier(n, quoted=True) for n in names])


def _value_name(value: exp.Expr) -> str:
    if isinstance(value, exp.PivotAlias):
        return str(value.args["alias"].name)
    if isinstance(value, exp.Tuple):
        return f"{{{', '.join(_value_name(v) for v in value.expressions)}}}"
    if isinstance(value, exp.Null):
        return "null"
    if isinstance(value, exp.Boolean):
        return "true" if value.this else "false"
    if isinstance(value, exp.Neg) and isinstance(value.this, exp.Literal):
        return f"-{value.this.name}"
    if isinstance(value, exp.Literal) and (value.is_string or value.name.isdigit()):
        return value.name
    raise Refusal("pivot", f"{value.sql(dialect='spark')} without a name", line_of(value))


def _call_name(call: exp.Expr) -> str:
    if isinstance(call, exp.Alias):
        return call.alias
    argument = call.this
    if call.key in NAMED_PLAINLY and isinstance(argument, exp.Column):
        return f"{call.key}({argument.name})"
    if isinstance(call, exp.Count) and isinstance(argument, (exp.Star, exp.Literal)) and not call.expressions:
        return "count(1)"
    raise Refusal("pivot", f"{call.sql(dialect='spark')} without a name", line_of(call))
