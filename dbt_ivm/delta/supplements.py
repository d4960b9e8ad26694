"""Outer joins maintained from the change and the stored rows.

Changed inputs come one after the other.  For input T, W is the view in between: the stored rows and what the inputs
before T did.  Inputs before T are read as after the change, those after it as before.

    P    = the rows of the view with a changed row of T: joins that replace T by NULLs keep T instead
    y(p) = p with NULLs for T and all that goes with it, for each pair of T (analysis/preserved_sides.py)
    m, n = rows of W with T that agree with p in the columns of the pair's condition, before P and with it
    Δ    = P  +  {y where m > 0, n = 0}  −  {y where m = 0, n > 0}

Rows with the same values in those columns have a match all or none, so m and n rely on no key.  T itself is not read;
the others are read once, and the stored rows once, within the changed values where conditions are equalities with T.
``tests/property/test_supplement_algebra.py`` has this in bags.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.analysis.outer_join_view import OuterJoinView, outer_join_view
from dbt_ivm.analysis.preserved_sides import Pair
from dbt_ivm.delta.context import DeltaContext
from dbt_ivm.delta.weights import WEIGHT_TYPE, as_bag, in_each_branch, join_weighted, net, sum_of, weight_last
from dbt_ivm.errors import InternalError
from dbt_ivm.nodes import replace_columns
from dbt_ivm.operators import (
    Aggregate,
    Filter,
    FullJoin,
    Join,
    LeftJoin,
    LeftLookup,
    Measure,
    OneRow,
    Operator,
    Project,
    Projection,
    Scan,
    SemiJoin,
    UnionAll,
    WindowFunction,
    Windowing,
    col,
    references,
)


def supplemented_change(ctx: DeltaContext, joins: Operator, stored: Operator) -> Operator | None:
    """The change of the joins, weighted; every changed input must be one that ``why_not`` has nothing against."""
    view = outer_join_view(joins)
    if view is None:
        raise InternalError("a plan without outer joins has no net supplements")
    done: list[str] = []
    changes: list[Operator] = []
    for name in changed_inputs(ctx, view):
        rows = _Step(ctx, view, name, frozenset(done)).primary(view.joins)
        if view.pairs[name]:
            change = ctx.delta_of(view.inputs[name])
            assert change is not None
            rows = _with_supplements(view, name, change, rows, stored, changes)
        changes.append(rows)
        done.append(name)
    return sum_of(changes)


def changed_inputs(ctx: DeltaContext, view: OuterJoinView) -> list[str]:
    """In the order in which they are looked at: those inside the most outer joins first.

    Then inputs that are read as before the change are mostly on the kept side, where weights may stay.
    """
    changed = [name for name, plan in view.inputs.items() if ctx.delta_of(plan) is not None]
    return sorted(changed, key=lambda name: -len(view.outer_joins[name]))


@dataclass(frozen=True)
class _Step:
    """One changed input while those in ``done`` are as after the change."""

    ctx: DeltaContext
    view: OuterJoinView
    name: str
    done: frozenset[str]

    def primary(self, plan: Operator) -> Operator:
        """P, weighted, with the plan's columns."""
        if plan is self.view.inputs[self.name]:
            change = self.ctx.delta_of(plan)
            assert change is not None
            return change
        if isinstance(plan, Project):
            return in_each_branch(self.primary(plan.input), plan.over)
        if isinstance(plan, Join):
            return join_weighted(
                plan, tuple(self.primary(m) if self._is_in(m) else self.state(m) for m in plan.members)
            )
        if not isinstance(plan, (LeftJoin, FullJoin)):
            raise InternalError(f"{plan.describe()} stands between joins")
        is_left = self._is_in(plan.left)
        if isinstance(plan, LeftJoin) and not is_left:
            rows = self.attached(self.primary(plan.right), plan.left, plan.predicates)
            return Project.keeping(rows, (*plan.column_names, names.WEIGHT))
        rows, other = (plan.left, plan.right) if is_left else (plan.right, plan.left)
        changed, matches = self.primary(rows), self.state(other)
        if not reads(changed):  # few rows; a second mention of them costs nothing
            matches = LeftJoin(rows, other, plan.predicates).within(matches, changed, None)
        kept = weight_last(LeftJoin(changed, as_bag(matches), plan.predicates))
        return Project.keeping(kept, (*plan.column_names, names.WEIGHT))

    def attached(self, changed: Operator, plan: Operator, predicates: tuple[exp.Expr, ...]) -> Operator:
        """Changed rows joined with a plan.  Where it keeps what they are joined with, they come before its outer join:

        x ⋈ (l ⟕ r)  =  (x ⋈ l) ⟕ r          when the condition is on columns of x and l
        """
        used = {n for p in predicates for n in references(p)} - set(changed.column_names)
        is_apart = not any(set(below.column_names) & set(changed.column_names) for below in plan.inputs)
        if isinstance(plan, Project) and is_apart and not self._is_input(plan):
            made_of = {p.name: p.expression for p in plan.projections}
            below = tuple(replace_columns(p, {n: made_of.get(n, col(n)) for n in references(p)}) for p in predicates)
            rows = self.attached(changed, plan.input, below)
            return Project(rows, (*plan.projections, *_passed(*changed.column_names)))
        if isinstance(plan, LeftJoin) and not self._is_input(plan) and used <= set(plan.left.column_names):
            rows = self.attached(changed, plan.left, predicates)
            return weight_last(LeftJoin(rows, as_bag(self.state(plan.right)), plan.predicates))
        before = self.state(plan)
        return join_weighted(Join((_plain(before), _plain(changed)), predicates), (before, changed))

    def _is_input(self, plan: Operator) -> bool:
        return any(part is plan for part in self.view.inputs.values())

    def state(self, plan: Operator) -> Operator:
        """The plan with some inputs as after the change, the others as before; weighted if need be."""
        inside = [name for name, part in self.view.inputs.items() if self._contains(plan, part)]
        changed = [name for name in inside if self.ctx.delta_of(self.view.inputs[name]) is not None]
        if all(name in self.done for name in changed):
            return self.ctx.post_of(plan)
        if self._is_input(plan):
            return self.ctx.pre_of(plan)
        if isinstance(plan, Project):
            return plan.over(self.state(plan.input))
        parts = tuple(self.state(below) for below in plan.inputs)
        if isinstance(plan, Join):
            return join_weighted(plan, parts)
        left, right = parts
        return weight_last(plan.with_inputs((as_bag(left) if isinstance(plan, FullJoin) else left, as_bag(right))))

    def _is_in(self, plan: Operator) -> bool:
        return self._contains(plan, self.view.inputs[self.name])

    def _contains(self, plan: Operator, part: Operator) -> bool:
        """Whether a part of the tree has the input; what inputs read (each other's tables, too) is their own matter."""
        return plan is part or (not self._is_input(plan) and any(self._contains(b, part) for b in plan.inputs))


def _plain(rows: Operator) -> Operator:
    return Project.keeping(rows, rows.value_names)


def reads(plan: Operator) -> int:
    """How often a plan reads tables, each mention of a part for itself: engines compute what is mentioned."""
    known: dict[int, int] = {}

    def count(operator: Operator) -> int:
        if id(operator) not in known:
            known[id(operator)] = int(isinstance(operator, Scan)) + sum(count(below) for below in operator.inputs)
        return known[id(operator)]

    return count(plan)


def _with_supplements(
    view: OuterJoinView,
    name: str,
    change: Operator,
    primary: Operator,
    stored: Operator,
    earlier: Sequence[Operator],
) -> Operator:
    """P and the net supplements of one input."""
    pairs = view.pairs[name]
    columns = view.joins.column_names
    matched = dict.fromkeys(view.shown_as[o] for pair in pairs for o in view.matched(pair))
    keys = {column: names.hidden("matched", i) for i, column in enumerate(matched, 1)}

    def is_there(number: int, pair: Pair) -> exp.Expr:
        """Whether a row counts for a pair: the input and what is preserved are there."""
        marks = [_known(view.shown_as[mark]) for mark in view.marks(name, pair)]
        return exp.and_(exp.EQ(this=col(names.SUPPLEMENT), expression=_number(number)), *marks)

    def key_of(column: str) -> exp.Expr:
        """The value, for the pairs that it matters to."""
        own = [n for n, p in enumerate(pairs, 1) if column in {view.shown_as[o] for o in view.matched(p)}]
        return col(column) if len(own) == len(pairs) else _where_number(own, col(column), exp.Null())

    key = (names.SUPPLEMENT, *keys.values())
    counted = tuple(Projection(k, key_of(c)) for c, k in keys.items())
    there = exp.or_(*(is_there(number, pair) for number, pair in enumerate(pairs, 1)))

    # P, and for each row what is left of it without the input
    every = Filter(_for_each(primary, range(len(pairs) + 1)), exp.or_(_is_row(), there.copy()))
    nulled = [Projection(c, _nulled(view, c, pairs)) for c in columns]
    rows = net(Project(every, (*nulled, *_passed(names.SUPPLEMENT), Projection(names.WEIGHT, col(names.WEIGHT)))))
    keyed = Project(rows, (*_passed(*rows.value_names), *counted, Projection(names.WEIGHT, col(names.WEIGHT))))

    # W: how many rows have the same match
    parts: list[Operator] = []
    for part in (stored, *earlier):
        stands_for = Filter(_for_each(part, range(1, len(pairs) + 1)), there.copy())
        parts.append(Project(stands_for, (*_passed(names.SUPPLEMENT), *counted, *_passed(names.WEIGHT))))
    asked_as = tuple(f"{names.PREFIX}asked_{i}" for i, _ in enumerate(key))
    asked = _asked_by_change(view, name, change, keys, asked_as) or Project(
        Filter(keyed, exp.Not(this=_is_row())), tuple(Projection(a, col(k)) for a, k in zip(asked_as, key, strict=True))
    )
    wanted = Aggregate(asked, asked.column_names)
    on = tuple(zip(key, wanted.column_names, strict=True))
    found = in_each_branch(
        UnionAll(tuple(parts)) if len(parts) > 1 else parts[0], lambda rows: SemiJoin(rows, wanted, on)
    )
    total = Measure(names.STORED_MATCHES, exp.Sum(this=col(names.WEIGHT)), WEIGHT_TYPE)
    before = Aggregate(found, key, (total,))
    renamed = tuple(Projection(f"{names.PREFIX}found_{i}", col(k)) for i, k in enumerate(key))
    before_rows = Project(before, (*renamed, *_passed(names.STORED_MATCHES)))

    # with the change
    over = exp.Window(this=exp.Sum(this=col(names.WEIGHT)), partition_by=[col(k) for k in key])
    changed = Windowing(keyed, key, (WindowFunction(names.MATCHES, over, WEIGHT_TYPE),))
    on_found = tuple(zip(key, (p.name for p in renamed), strict=True))
    judged = Project(
        LeftLookup(changed, before_rows, on_found), (*_passed(*columns), Projection(names.WEIGHT, _weight()))
    )
    return Filter(judged, exp.NEQ(this=col(names.WEIGHT), expression=_number(0)))


def _asked_by_change(
    view: OuterJoinView, name: str, change: Operator, keys: Mapping[str, str], asked_as: tuple[str, ...]
) -> Operator | None:
    """What may be matched by changed rows of the input, where conditions hold it equal to columns of the input.

    P is then mentioned once; otherwise (None) P itself says what it matches.
    """
    parts: list[Operator] = []
    for number, pair in enumerate(view.pairs[name], 1):
        equal = view.equal_columns(pair, name)
        values: list[exp.Expr] = [_number(number)]
        for column in keys:
            origin = view.origins[column]
            if origin not in view.matched(pair):
                values.append(exp.Null())
            elif origin in equal:
                values.append(col(equal[origin]))
            else:
                return None
        parts.append(Project(change, tuple(Projection(a, v) for a, v in zip(asked_as, values, strict=True))))
    return UnionAll(tuple(parts)) if len(parts) > 1 else parts[0]


def _for_each(rows: Operator, numbers: range) -> Operator:
    """Each row once per number; in one branch per addend, which are read once."""
    if len(numbers) == 1:
        return in_each_branch(rows, lambda part: Project(part, (*_passed(*part.column_names), _numbered(numbers[0]))))
    listed = UnionAll(tuple(Project(OneRow(), (_numbered(n),)) for n in numbers))
    return Project.keeping(Join((rows, listed)), (*rows.column_names, names.SUPPLEMENT))


def _numbered(number: int) -> Projection:
    return Projection(names.SUPPLEMENT, _number(number))


def _nulled(view: OuterJoinView, column: str, pairs: Sequence[Pair]) -> exp.Expr:
    """The value of a row or of what is left of it: a mark is gone when its whole side is."""
    numbers = [n for n, pair in enumerate(pairs, 1) if view.origins[column].inputs <= pair.supplied]
    return _where_number(numbers, exp.Null(), col(column)) if numbers else col(column)


def _where_number(numbers: Sequence[int], value: exp.Expr, other: exp.Expr) -> exp.Expr:
    within = exp.In(this=col(names.SUPPLEMENT), expressions=[_number(n) for n in numbers])
    return exp.Case(ifs=[exp.If(this=within, true=value)], default=other)


def _weight() -> exp.Expr:
    """A row counts as it changed; what is left of it comes with the last match and goes with the first."""
    stored = exp.Coalesce(this=col(names.STORED_MATCHES), expressions=[_number(0)])
    now = exp.Add(this=stored, expression=col(names.MATCHES))
    had, has = (exp.NEQ(this=exp.Paren(this=n), expression=_number(0)) for n in (stored, now))
    ifs: list[tuple[exp.Expr, exp.Expr]] = [
        (_is_row(), col(names.WEIGHT)),
        (exp.and_(had, exp.Not(this=exp.Paren(this=has))), _number(1)),
        (exp.and_(exp.Not(this=exp.Paren(this=had.copy())), has.copy()), exp.Neg(this=_number(1))),
    ]
    chosen = exp.Case(ifs=[exp.If(this=c, true=v) for c, v in ifs], default=_number(0))
    return nodes.cast(chosen, WEIGHT_TYPE)


def _is_row() -> exp.Expr:
    return exp.EQ(this=col(names.SUPPLEMENT), expression=_number(0))


def _known(column: str) -> exp.Expr:
    return exp.Not(this=exp.Is(this=col(column), expression=exp.Null()))


def _passed(*columns: str) -> tuple[Projection, ...]:
    return tuple(Projection(c, col(c)) for c in columns)


def _number(value: int) -> exp.Expr:
    return exp.Literal.number(value)
