"""UNION, INTERSECT and EXCEPT, with and without ALL.

INTERSECT        δ(L) ⋉ R, EXCEPT  δ(L) ▷ R, comparing all columns null-safe
… ALL            copies counted on both sides: min(l, r), or l − r, copies of each row
"""

from __future__ import annotations

from sqlglot import exp

from dbt_ivm import nodes
from dbt_ivm.errors import Refusal, UserError
from dbt_ivm.frontend.given import Given
from dbt_ivm.frontend.lower import Lowering, Rows
from dbt_ivm.frontend.parse import line_of
from dbt_ivm.nested_types import holds_map
from dbt_ivm.nodes import replace_columns
from dbt_ivm.operators import (
    Aggregate,
    Column,
    Existence,
    Filter,
    Generate,
    Kind,
    Measure,
    Operator,
    Project,
    Projection,
    Scan,
    UnionAll,
    Windowing,
    col,
    references,
)
from dbt_ivm.types import common_type


def lower_set_operation(lowering: Lowering, query: exp.SetOperation, given: Given | None = None) -> Rows:
    if query.args.get("by_name"):
        raise Refusal("set_operation", "BY NAME", line_of(query))
    left, right = lowering.query(query.left, given), lowering.query(query.right, given)
    if len(left.outputs) != len(right.outputs):
        raise UserError(
            "IVM_UNION_WIDTH",
            f"{query.key.upper()} of {len(left.outputs)} and {len(right.outputs)} columns at line {line_of(query)}",
        )
    sides = [_outputs(lowering, side, left.visible) for side in (left, right)]
    distinct = bool(query.args.get("distinct"))
    if isinstance(query, exp.Union):
        plan: Operator = UnionAll(tuple(_same_types(query, sides)))
        plan = Aggregate(plan, plan.column_names) if distinct else plan
    elif distinct:
        first, other = _same_types(query, sides)
        same = zip(first.column_names, other.column_names, strict=True)
        on = tuple(exp.NullSafeEQ(this=col(a), expression=col(b)) for a, b in same)
        kind = Kind.SEMI if isinstance(query, exp.Intersect) else Kind.ANTI
        plan = Existence(Aggregate(first, first.column_names), other, on, kind)
    else:
        plan = _copies(lowering, _same_types(query, sides), isinstance(query, exp.Intersect))
    return Rows(plan, tuple(zip(left.visible, plan.column_names, strict=True)))


def _outputs(lowering: Lowering, side: Rows, names: tuple[str, ...]) -> Operator:
    """Exactly the output columns, in order."""
    pairs = [(lowering.fresh(f"u_{n}"), c) for n, (_, c) in zip(names, side.outputs, strict=True)]
    return Project(side.plan, tuple(Projection(new, col(c)) for new, c in pairs))


def _same_types(query: exp.SetOperation, sides: list[Operator]) -> list[Operator]:
    """Both sides with the types that the operation gives its result.

    A change of one side is compared with rows that were stored in the common type, so that type must be known: the
    number 1 is no stored '01', which SQL would take for equal.
    """
    first, other = sides
    kinds: list[str] = []
    for a, b in zip(first.columns, other.columns, strict=True):
        if holds_map(a.type) or holds_map(b.type):
            if not isinstance(query, exp.Union):
                raise Refusal("set_operation", f"{query.key.upper()} of {a.type}", line_of(query))
            # maps of two types are refused with the plan
        elif not common_type(a.type, b.type) and not _are_one_type((first, a), (other, b)):
            raise Refusal(
                "set_operation",
                f"{query.key.upper()} of {a.type or 'unknown'} and {b.type or 'unknown'}",
                line_of(query),
            )
        kinds.append(common_type(a.type, b.type))
    return [_cast(side, kinds) for side in sides]


def _are_one_type(*columns: tuple[Operator, Column]) -> bool:
    """Whether columns of unknown type have the same one: one has NULLs only, or both are made alike."""
    if any(column.type == "void" for _, column in columns):
        return True
    left, right = (_made_of(plan, column.name) for plan, column in columns)
    return left is not None and left == right


def _made_of(plan: Operator, name: str) -> exp.Expr | None:
    """The expression of a column over types and columns of tables, which has one type wherever it stands."""
    if plan.types[name]:
        return col(plan.types[name])
    if isinstance(plan, Scan):
        return col(f"{plan.source}.{name}")
    if isinstance(plan, UnionAll):
        place = plan.column_names.index(name)
        member = next(m for m in plan.members if m.columns[place].type != "void")
        return _made_of(member, member.column_names[place])
    made = _expressions(plan).get(name)
    if made is None:
        below = next((i for i in plan.inputs if name in i.column_names), None)
        return _made_of(below, name) if below is not None else None
    (rows,) = plan.inputs
    parts = {n: _made_of(rows, n) for n in references(made)}
    return replace_columns(made, {n: p for n, p in parts.items() if p is not None}) if all(parts.values()) else None


def _expressions(plan: Operator) -> dict[str, exp.Expr]:
    if isinstance(plan, Project):
        return {p.name: p.expression for p in plan.projections}
    if isinstance(plan, Aggregate):
        return {m.name: m.call for m in plan.measures}
    return {f.name: f.call for f in plan.functions} if isinstance(plan, Windowing) else {}


def _cast(side: Operator, kinds: list[str]) -> Operator:
    if all(not kind or kind == c.type for kind, c in zip(kinds, side.columns, strict=True)):
        return side
    projections = [
        Projection(c.name, col(c.name) if kind in ("", c.type) else nodes.cast(col(c.name), kind))
        for kind, c in zip(kinds, side.columns, strict=True)
    ]
    return Project(side, tuple(projections))


def _copies(lowering: Lowering, sides: list[Operator], intersect: bool) -> Operator:
    """How often each row is on both sides, then as many copies as the operation leaves."""
    here, there, copies = (lowering.fresh(n) for n in ("copies_left", "copies_right", "copies"))
    counted = []
    for side, (left, right) in zip(sides, ((1, 0), (0, 1)), strict=True):
        kept = tuple(Projection(n, col(o)) for n, o in zip(sides[0].column_names, side.column_names, strict=True))
        flags = (Projection(here, exp.Literal.number(left)), Projection(there, exp.Literal.number(right)))
        counted.append(Project(side, kept + flags))
    names = sides[0].column_names
    totals = tuple(Measure(n, exp.Sum(this=col(n)), "bigint") for n in (here, there))
    grouped = Aggregate(UnionAll(tuple(counted)), names, totals)
    if intersect:
        left_over: exp.Expr = exp.Anonymous(this="LEAST", expressions=[col(here), col(there)])
    else:
        left_over = exp.Sub(this=col(here), expression=col(there))
    some = Filter(grouped, exp.GT(this=left_over, expression=exp.Literal.number(0)))
    one = nodes.cast(exp.Literal.number(1), "bigint")
    series = exp.Explode(
        this=exp.Anonymous(this="SEQUENCE", expressions=[one, nodes.cast(nodes.grouped(left_over), "bigint")])
    )
    return Project.keeping(Generate(some, series, (Column(copies, "bigint"),)), names)
