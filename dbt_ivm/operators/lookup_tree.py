"""A join whose members are looked up from a root by unique keys (star, snowflake, chain).  MULTILINEAR, in one branch:

    Δ(R ⋈ S ⋈ …) = ΔR* looked up:  rows seen 'after' meet Post(S), rows seen 'before' meet Pre(S) = Post(S) − ΔS
    ΔR*          = Ins(R) after, −Del(R) before, and A both ways        A = rows of Unc(R) that reference a touched key
    touched(S)   = the part of the keys in ΔS that an unchanged row may reference (Reach), and the keys of A in S

With Reach.ALL this is exact whatever the keys: Unc(R) ⋈ ΔS = (Unc(R) ⋉ keys(ΔS)) ⋈ (Post(S) − Pre(S)).  Foreign keys
make ``touched`` small: see Reach.  Made from a Join by optimizer/contract_lookups.py; it never stands in a view plan.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp

from dbt_ivm import names
from dbt_ivm.errors import InternalError
from dbt_ivm.operators.aggregate import Aggregate
from dbt_ivm.operators.base import Column, Linearity, NaryOperator, Operator, col
from dbt_ivm.operators.filter import Filter
from dbt_ivm.operators.join import Join
from dbt_ivm.operators.left_lookup import LeftLookup
from dbt_ivm.operators.one_row import OneRow
from dbt_ivm.operators.project import Project, Projection
from dbt_ivm.operators.scan import Field, Scan
from dbt_ivm.operators.scan_kept import ScanKept
from dbt_ivm.operators.semi_join import SemiJoin
from dbt_ivm.operators.union_all import UnionAll

if TYPE_CHECKING:
    from dbt_ivm.delta.context import DeltaContext

AFTER, BEFORE = 1, -1


class Reach(Enum):
    """Which changed keys of a table unchanged rows of the referencing one may have; the rest is new or gone.

    ALL       every changed key                       nothing is known but the key's columns
    REMOVED   removed keys, and inserted ones that    no row dangled before
              more than one row has now
    REPLACED  keys both removed and inserted          the foreign key holds before and after, keys are unique: trusted
    """

    ALL = "all"
    REMOVED = "removed"
    REPLACED = "replaced"


@dataclass(frozen=True)
class Lookup:
    """Member ``child`` is looked up from member ``parent``.

    Args:
        on: columns of parent and child that are equal.
        scan: the stored table below the child, whose change has the changed keys.
        scanned: the key's columns in that scan, in the order of ``on``.
        is_declared: a foreign key is declared along it.
    """

    parent: int
    child: int
    on: tuple[tuple[str, str], ...]
    scan: Scan
    scanned: tuple[str, ...]
    name: str
    reach: Reach = Reach.ALL
    is_declared: bool = False


@dataclass(frozen=True)
class LookupTree(NaryOperator):
    """``members[0]`` is the root.  ``kept_as``: where the rows to look up are kept, when they were computed before."""

    members: tuple[Operator, ...]
    lookups: tuple[Lookup, ...]
    predicates: tuple[exp.Expr, ...]
    kept_as: str = ""

    linearity: ClassVar[Linearity] = Linearity.MULTILINEAR

    def __post_init__(self) -> None:
        if [lookup.child for lookup in self.lookups] != list(range(1, len(self.members))):
            raise InternalError(f"every member but the root needs one lookup: {[str(e.name) for e in self.lookups]}")

    @cached_property
    def join(self) -> Join:
        return Join(self.members, self.predicates)

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.join.columns

    def describe(self) -> str:
        return "LookupTree " + ", ".join(f"{e.name} reach {e.reach.value}" for e in self.lookups)

    def post(self, ctx: DeltaContext) -> Operator:
        return ctx.post_of(self.join)

    def pre(self, ctx: DeltaContext) -> Operator:
        return self.join.pre(ctx)

    def delta(self, ctx: DeltaContext) -> Operator | None:
        """The rows to look up, joined with every table as each of them must see it."""
        rows = self.looked_up(ctx, 0)
        if rows is None:
            return None
        only_after = self._only_adds(ctx)
        members = [_renamed(rows, {names.WEIGHT: names.hidden("weight", 1)})]
        conditions: list[exp.Expr] = []
        product: exp.Expr = col(names.hidden("weight", 1))
        for number, member in enumerate(self.members[1:], 2):
            change = ctx.delta_of(member)
            if change is None or only_after:
                members.append(ctx.post_of(member))
                continue
            weight, old = names.hidden("weight", number), names.hidden("old", number)
            members.append(_as_seen(ctx.post_of(member), change, weight, old))
            is_current = exp.EQ(this=col(old), expression=exp.Literal.number(0))
            is_before = exp.EQ(this=col(names.SIDE), expression=_number(BEFORE))
            conditions.append(exp.Paren(this=exp.Or(this=is_current, expression=is_before)))
            product = exp.Mul(this=product, expression=col(weight))
        joined = Join(tuple(members), (*self.predicates, *conditions))
        values = tuple(Projection(n, col(n)) for n in self.value_names)
        return Project(joined, (*values, Projection(names.WEIGHT, product)))

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
        from dbt_ivm.delta.touched import key_names, reached_keys, renaming
        from dbt_ivm.delta.weights import sum_of

        key = key_names(lookup)
        parts = reached_keys(ctx, lookup)
        below = self._referencing(ctx, lookup.child)
        if below is not None:
            parts.append(Project(below, renaming(tuple(c for _, c in lookup.on), key)))
        found = sum_of(parts)
        return None if found is None else Aggregate(found, key)

    def _referencing(self, ctx: DeltaContext, position: int) -> Operator | None:
        """Unc ⋉ touched, weighted: rows after the change that reference a touched key, without the inserted ones."""
        touched = [
            (lookup, keys)
            for lookup in self.lookups
            if lookup.parent == position and (keys := self.touched(ctx, lookup)) is not None
        ]
        if not touched:
            return None
        rows = self._unchanged(ctx, position)
        if len(touched) == 1:
            ((lookup, keys),) = touched
            return SemiJoin(rows, keys, tuple(zip((p for p, _ in lookup.on), keys.column_names, strict=True)))
        flags: list[exp.Expr] = []
        flagged = rows
        for number, (lookup, keys) in enumerate(touched, 1):
            apart = tuple(f"{k}_{number}" for k in keys.column_names)
            keys = Project(keys, tuple(Projection(a, col(k)) for a, k in zip(apart, keys.column_names, strict=True)))
            flagged = LeftLookup(flagged, keys, tuple(zip((p for p, _ in lookup.on), apart, strict=True)))
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


def _as_seen(after: Operator, change: Operator, weight: str, old: str) -> Operator:
    """Post for every row, and −Δ for those that see the table before the change."""
    from dbt_ivm.delta.weights import weighted

    now = with_column(weighted(after), old, exp.Literal.number(0))
    before = with_column(weighted(change, -1), old, exp.Literal.number(1))
    return _renamed(UnionAll((now, before)), {names.WEIGHT: weight})


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
