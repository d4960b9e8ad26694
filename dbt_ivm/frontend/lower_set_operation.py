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
    UnionAll,
    col,
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
    """Both sides with the types that the operation gives its result."""
    first, other = sides
    kinds: list[str] = []
    for a, b in zip(first.columns, other.columns, strict=True):
        common = common_type(a.type, b.type)
        if isinstance(query, exp.Union):  # where a type is unknown, the engine finds the common one
            kinds.append(common)
            continue
        if holds_map(a.type) or holds_map(b.type):
            raise Refusal("set_operation", f"{query.key.upper()} of {a.type}", line_of(query))
        if not common and a.type != b.type:
            raise Refusal(
                "set_operation",
                f"{query.key.upper()} of {a.type or 'unknown'} and {b.type or 'unknown'}",
                line_of(query),
            )
        kinds.append(common)
    return [_cast(side, kinds) for side in sides]


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
