"""A join whose members are looked up from a root by unique keys (star, snowflake, chain).  MULTILINEAR, in one branch:

    Δ(R ⋈ S ⋈ …) = ΔR* looked up:  rows seen 'after' meet Post(S), rows seen 'before' meet Pre(S) = Post(S) − ΔS
    ΔR*          = Ins(R) after, −Del(R) before, and A both ways        A = rows of Unc(R) that reference a touched key
    touched(S)   = the part of the keys in ΔS that an unchanged row may reference (Reach), and the keys of A in S

With Reach.ALL this is exact whatever the keys: Unc(R) ⋈ ΔS = (Unc(R) ⋉ keys(ΔS)) ⋈ (Post(S) − Pre(S)).  Foreign keys
make ``touched`` small: see Reach.  An edge may keep rows without a match (a left join); then the tables are seen in
another way (delta/seen.py), and all else is the same.  Made from joins by optimizer/contract_lookups.py; it never
stands in a view plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from dbt_ivm import names
from dbt_ivm.errors import InternalError
from dbt_ivm.operators.aggregate import Aggregate
from dbt_ivm.operators.base import Column, Linearity, NaryOperator, Operator, col
from dbt_ivm.operators.filter import Filter
from dbt_ivm.operators.join import Join
from dbt_ivm.operators.left_join import LeftJoin
from dbt_ivm.operators.left_lookup import LeftLookup
from dbt_ivm.operators.lookup import AFTER, BEFORE, Lookup
from dbt_ivm.operators.one_row import OneRow
from dbt_ivm.operators.project import Project, Projection
from dbt_ivm.operators.scan import Field
from dbt_ivm.operators.scan_kept import ScanKept
from dbt_ivm.operators.semi_join import SemiJoin
from dbt_ivm.operators.union_all import UnionAll
from dbt_ivm.types import are_comparable

if TYPE_CHECKING:
    from dbt_ivm.delta.context import DeltaContext


@dataclass(frozen=True)
class LookupTree(NaryOperator):
    """``members[0]`` is the root; members that are looked up by a left join come last.

    Args:
        predicates: conditions of the inner part.
        kept_as: where the rows to look up are kept, when they were computed before.
    """

    members: tuple[Operator, ...]
    lookups: tuple[Lookup, ...]
    predicates: tuple[exp.Expr, ...]
    kept_as: str = ""

    linearity: ClassVar[Linearity] = Linearity.MULTILINEAR

    def __post_init__(self) -> None:
        if [lookup.child for lookup in self.lookups] != list(range(1, len(self.members))):
            raise InternalError(f"every member but the root needs one lookup: {[str(e.name) for e in self.lookups]}")

    @cached_property
    def inner(self) -> tuple[Operator, ...]:
        """The root and the members that inner joins look up."""
        return (self.members[0], *(self.members[e.child] for e in self.lookups if not e.keeps))

    @cached_property
    def join(self) -> Operator:
        """The same as joins."""
        joined: Operator = Join(self.inner, self.predicates) if len(self.inner) > 1 else self.members[0]
        for lookup in self.lookups:
            if lookup.keeps:
                joined = LeftJoin(joined, self.members[lookup.child], lookup.condition)
        return joined

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(c for m in self.members for c in m.columns)

    def describe(self) -> str:
        kinds = ((e, "left " if e.keeps else "") for e in self.lookups)
        return "LookupTree " + ", ".join(f"{left}{e.name} reach {e.reach.value}" for e, left in kinds)

    def post(self, ctx: DeltaContext) -> Operator:
        return ctx.post_of(self.join)

    def pre(self, ctx: DeltaContext) -> Operator:
        """Of left joins what the change undoes: what rows of NULLs there were is known already."""
        from dbt_ivm.delta.weights import minus

        change = ctx.delta_of(self)
        if change is None or len(self.inner) == len(self.members):
            return self.join.pre(ctx)
        return minus(ctx.post_of(self), change)

    def delta(self, ctx: DeltaContext) -> Operator | None:
        """The rows to look up, joined with every table as each of them must see it."""
        from dbt_ivm.delta.seen import meets, seen_by_inner, seen_by_left

        rows = self.looked_up(ctx, 0)
        if rows is None:
            return None
        only_after = self._only_adds(ctx)
        weights = [names.hidden("weight", number) for number, _ in enumerate(self.members, 1)]
        joined: Operator = _renamed(rows, {names.WEIGHT: weights[0]})
        product: exp.Expr = col(weights[0])
        inner, conditions = [joined], list(self.predicates)
        for lookup in self.lookups:
            if lookup.keeps:
                continue
            member, number = self.members[lookup.child], lookup.child
            if only_after or ctx.delta_of(member) is None:
                inner.append(ctx.post_of(member))
                continue
            side = names.hidden("side", number + 1)
            inner.append(seen_by_inner(ctx, member, weights[number], side))
            conditions.append(meets(side))
            product = exp.Mul(this=product, expression=col(weights[number]))
        joined = Join(tuple(inner), tuple(conditions)) if len(inner) > 1 else joined
        for lookup in self.lookups:
            if not lookup.keeps:
                continue
            member, number = self.members[lookup.child], lookup.child
            is_whole = only_after or ctx.delta_of(member) is None
            side = "" if is_whole else names.hidden("side", number + 1)
            wanted = self._wanted(ctx, lookup)
            right = seen_by_left(ctx, lookup, member, wanted, weights[number], side)
            joined = LeftJoin(joined, right, lookup.condition if is_whole else (*lookup.condition, meets(side)))
            if not is_whole:
                weight = exp.Coalesce(this=col(weights[number]), expressions=[exp.Literal.number(1)])
                product = exp.Mul(this=product, expression=weight)
        values = tuple(Projection(n, col(n)) for n in self.value_names)
        return Project(joined, (*values, Projection(names.WEIGHT, product)))

    def _wanted(self, ctx: DeltaContext, lookup: Lookup) -> Operator | None:
        """All keys that the rows to look up have along an edge; None when finding them computes these rows again."""
        from dbt_ivm.delta.touched import key_names, renaming
        from dbt_ivm.delta.weights import sum_of

        key, columns = key_names(lookup), tuple(p for p, _ in lookup.on)
        comparable = all(are_comparable(self.types[p], self.types[c]) for p, c in lookup.on)
        if lookup.parent != 0 or not comparable:
            return None
        if self.kept_as:
            rows = self.looked_up(ctx, 0)
            return None if rows is None else Aggregate(Project(rows, renaming(columns, key)), key)
        touched = self._touched_below(ctx, 0)
        if any(edge.child != lookup.child for edge, _ in touched):
            return None
        change = ctx.delta_of(self.members[0])
        parts = [keys for _, keys in touched]
        if change is not None:
            parts.append(Project(change, renaming(columns, key)))
        found = sum_of(parts)
        return None if found is None else Aggregate(found, key)

    def looked_up(self, ctx: DeltaContext, position: int) -> Operator | None:
        """The extended change of a member; the root's is read from where it is kept when it is."""
        rows = self.extended_change(ctx, position)
        if rows is None or position != 0 or not self.kept_as:
            return rows
        return ScanKept(self.kept_as, tuple(Field(c.name, c.name, c.type) for c in rows.columns), "Rows to look up")

    def reads_again(self, ctx: DeltaContext) -> bool:
        """Whether unchanged rows of the root are looked up too."""
        return self._referencing(ctx, 0) is not None

    def extended_change(self, ctx: DeltaContext, position: int) -> Operator | None:
        """ΔR*: the change of a member and, both ways, its unchanged rows that reference a touched key.

        Each row has its weight and the side it sees.
        """
        from dbt_ivm.delta.weights import sum_of

        change = ctx.delta_of(self.members[position])
        again = self._referencing(ctx, position)
        parts: list[Operator] = []
        if change is not None:
            is_new = exp.GT(this=col(names.WEIGHT), expression=exp.Literal.number(0))
            side = exp.Case(ifs=[exp.If(this=is_new, true=_number(AFTER))], default=_number(BEFORE))
            parts.append(with_column(change, names.SIDE, side))
        if again is not None:
            parts.append(_both_ways(again))
        return sum_of(parts)

    def touched(self, ctx: DeltaContext, lookup: Lookup) -> Operator | None:
        """Keys of the child that unchanged rows of the parent may reference and that look different now."""
        return ctx.once((id(self), "touched", lookup.child), self, lambda: self._touched(ctx, lookup))

    def _touched(self, ctx: DeltaContext, lookup: Lookup) -> Operator | None:
        from dbt_ivm.delta.touched import key_names, reached_keys, renaming
        from dbt_ivm.delta.weights import sum_of

        key = key_names(lookup)
        parts = reached_keys(ctx, lookup)
        below = self._referencing(ctx, lookup.child)
        if below is not None:
            parts.append(Project(below, renaming(tuple(c for _, c in lookup.on), key)))
        found = sum_of(parts)
        return None if found is None else Aggregate(found, key)

    def _touched_below(self, ctx: DeltaContext, position: int) -> list[tuple[Lookup, Operator]]:
        """The lookups from a member that have touched keys, with these."""
        return [
            (lookup, keys)
            for lookup in self.lookups
            if lookup.parent == position and (keys := self.touched(ctx, lookup)) is not None
        ]

    def _referencing(self, ctx: DeltaContext, position: int) -> Operator | None:
        """Unc ⋉ touched, weighted: rows after the change that reference a touched key, without the inserted ones."""
        touched = self._touched_below(ctx, position)
        if not touched:
            return None
        rows = self._unchanged(ctx, position)
        if len(touched) == 1:
            ((lookup, keys),) = touched
            pairs = tuple(zip((p for p, _ in lookup.on), keys.column_names, strict=True))
            return SemiJoin(rows, keys, pairs, nulls=False)
        flags: list[exp.Expr] = []
        flagged = rows
        for number, (lookup, keys) in enumerate(touched, 1):
            apart = tuple(f"{k}_{number}" for k in keys.column_names)
            keys = Project(keys, tuple(Projection(a, col(k)) for a, k in zip(apart, keys.column_names, strict=True)))
            flagged = LeftLookup(flagged, keys, tuple(zip((p for p, _ in lookup.on), apart, strict=True)), nulls=False)
            flags.append(exp.Not(this=exp.Is(this=col(apart[0]), expression=exp.Null())))
        return Project.keeping(Filter(flagged, exp.or_(*flags)), rows.column_names)

    def _unchanged(self, ctx: DeltaContext, position: int) -> Operator:
        from dbt_ivm.delta.weights import minus, weighted

        after, change = ctx.post_of(self.members[position]), ctx.delta_of(self.members[position])
        if change is None:
            return weighted(after)
        return minus(after, Filter(change, exp.GT(this=col(names.WEIGHT), expression=exp.Literal.number(0))))

    def _only_adds(self, ctx: DeltaContext) -> bool:
        """Whether every row to look up sees the tables after the change."""
        root = self.members[0]
        return self._referencing(ctx, 0) is None and ctx.only_adds(root)


def with_column(rows: Operator, name: str, value: exp.Expr) -> Operator:
    """The rows with one column more."""
    return Project(rows, (*(Projection(n, col(n)) for n in rows.column_names), Projection(name, value)))


def _both_ways(rows: Operator) -> Operator:
    """Each row added as it is looked up after the change and removed as before it; the rows are read once."""
    sides = tuple(Project(OneRow(), (Projection(names.SIDE, _number(side)),)) for side in (AFTER, BEFORE))
    both = Join((rows, UnionAll(sides)))
    weight = exp.Mul(this=col(names.WEIGHT), expression=col(names.SIDE))
    values = tuple(Projection(n, col(n)) for n in rows.value_names)
    return Project(both, (*values, Projection(names.WEIGHT, weight), Projection(names.SIDE, col(names.SIDE))))


def _renamed(rows: Operator, new: dict[str, str]) -> Operator:
    return Project(rows, tuple(Projection(new.get(n, n), col(n)) for n in rows.column_names))


def _number(value: int) -> exp.Expr:
    return exp.Literal.number(value) if value >= 0 else exp.Neg(this=exp.Literal.number(-value))
