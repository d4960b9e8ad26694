"""A plan as a query.  One function per operator; an operator without one is an error, never silence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.comparable import same
from dbt_ivm.dialect import SparkFour
from dbt_ivm.errors import InternalError
from dbt_ivm.operators import (
    Aggregate,
    Existence,
    Filter,
    FullJoin,
    Generate,
    Join,
    Kind,
    LeftJoin,
    LeftLookup,
    OneRow,
    Operator,
    Project,
    Repeat,
    Scan,
    ScanChanges,
    ScanKept,
    ScanValues,
    SemiJoin,
    UnionAll,
    Windowing,
)
from dbt_ivm.operators.base import references
from dbt_ivm.operators.existence import with_and_without
from dbt_ivm.operators.preserving import equalities, one_key_each
from dbt_ivm.render.block import Block, SideJoin, Source
from dbt_ivm.storage.live_rows import STORED, from_live_rows

ADDED_CHANGES = ("insert", "update_postimage")

#: Operators whose rows take work or text; scans, filters and projections are cheaper to repeat.
SHAREABLE = (Aggregate, UnionAll, ScanValues, LeftJoin, FullJoin, Existence, Windowing, Generate)


def sql_text(expression: exp.Expr) -> str:
    """The one place where a tree becomes text; the tree is used up."""
    return expression.sql(dialect=SparkFour, pretty=True, copy=False)


def render_query(plan: Operator, small: frozenset[str] = frozenset()) -> exp.Query:
    """The plan as a query whose columns are the plan's, in order.

    Args:
        small: names of sources whose netted changes may be broadcast.
    """
    renderer = Renderer(small, shared_operators([plan]))
    return renderer.with_shared(renderer.query(plan))


def render_side_by_side(plans: Sequence[Operator], small: frozenset[str] = frozenset()) -> exp.Query:
    """Plans of one row each as one row; what several of them use is defined once."""
    renderer = Renderer(small, shared_operators(plans))
    select = exp.Select(expressions=[exp.Star()])
    for position, plan in enumerate(plans):
        part = nodes.aliased(renderer.query(plan), f"row{position + 1}")
        if position == 0:
            select = select.from_(part, copy=False)
        else:
            select.append("joins", exp.Join(this=part, kind="CROSS"))
    return renderer.with_shared(select)


def in_one_task(select: exp.Select) -> exp.Select:
    """Few rows: one task reads and writes them faster than many, into one file."""
    one = exp.Anonymous(this="COALESCE", expressions=[exp.Literal.number(1)])
    select.set("hint", exp.Hint(expressions=[one]))
    return select


def shared_operators(plans: Sequence[Operator]) -> frozenset[int]:
    """Operators (by identity) that the plans mention more than once and that are worth a name of their own."""
    mentions: Counter[int] = Counter()

    def visit(operator: Operator) -> None:
        mentions[id(operator)] += 1
        if mentions[id(operator)] == 1 or not isinstance(operator, SHAREABLE):  # a cheap one repeats what it reads
            for below in operator.inputs:
                visit(below)

    for plan in plans:
        visit(plan)
    worth: set[int] = set()

    def select(operator: Operator) -> None:
        if mentions[id(operator)] > 1 and isinstance(operator, SHAREABLE):
            worth.add(id(operator))
        for below in operator.inputs:
            select(below)

    for plan in plans:
        select(plan)
    return frozenset(worth)


class Renderer:
    def __init__(self, small: frozenset[str] = frozenset(), shared: frozenset[int] = frozenset()) -> None:
        self.small = small
        self.shared = shared
        self.shared_queries: dict[str, exp.Query] = {}
        self.shared_names: dict[int, str] = {}
        self.numbers = count(1)

    def with_shared(self, query: exp.Query) -> exp.Query:
        """The query with everything defined that it mentions by name."""
        for name, shared in self.shared_queries.items():
            query = query.with_(name, as_=shared, copy=False)
        return query

    def query(self, plan: Operator) -> exp.Query:
        if isinstance(plan, UnionAll) and id(plan) not in self.shared:
            return self.union(plan)
        return self.block(plan).select()

    def block(self, plan: Operator) -> Block:
        if id(plan) in self.shared:
            return self.shared_block(plan)
        return self.own_block(plan)

    def shared_block(self, plan: Operator) -> Block:
        """A mention of a query that WITH defines once."""
        name = self.shared_names.get(id(plan))
        if name is None:
            query = self.union(plan) if isinstance(plan, UnionAll) else self.own_block(plan).sources[0].relation.this
            name = self.shared_names[id(plan)] = self.alias("shared")
            self.shared_queries[name] = query  # after the ones it uses
        alias = self.alias("s")
        table = exp.Table(this=exp.to_identifier(name), alias=nodes.alias(alias))
        outputs: dict[str, exp.Expr] = {n: _qualified(n, alias) for n in plan.column_names}
        return Block(outputs, (Source(alias, table, self.is_small(plan)),))

    def own_block(self, plan: Operator) -> Block:
        rule = _BLOCKS.get(type(plan))
        if rule is None:
            raise InternalError(f"no SQL for operator {type(plan).__name__}")
        return rule(self, plan)

    def alias(self, prefix: str) -> str:
        return f"{prefix}{next(self.numbers)}"

    def closed(self, query: exp.Query, columns: tuple[str, ...], prefix: str = "q", small: bool = False) -> Block:
        """A finished query as the only source of a new block."""
        alias = self.alias(prefix)
        subquery = nodes.aliased(query, alias)
        return Block({n: _qualified(n, alias) for n in columns}, (Source(alias, subquery, small),))

    def source_of(self, plan: Operator, prefix: str) -> tuple[Source, dict[str, exp.Expr]]:
        """The plan as one closed source, with its columns."""
        block = self.closed(self.query(plan), plan.column_names, prefix, self.is_small(plan))
        return block.sources[0], block.outputs

    def is_small(self, plan: Operator) -> bool:
        """Whether all rows come from changes that are known to be few."""
        if isinstance(plan, ScanChanges):
            return str(plan.source) in self.small
        if isinstance(plan, ScanKept):
            return plan.small
        if isinstance(plan, ScanValues):
            return True
        if isinstance(plan, Aggregate) and isinstance(plan.input, SemiJoin):
            chosen = plan.input  # grouped by what it was chosen by: at most one group per key
            if set(plan.group) <= {column for column, _ in chosen.on} and self.is_small(chosen.keys):
                return True
        if isinstance(plan, (Filter, Project, Aggregate, Windowing)):
            return self.is_small(plan.input)
        if isinstance(plan, Existence):
            return self.is_small(plan.left)
        if isinstance(plan, UnionAll):
            return all(self.is_small(m) for m in plan.members)
        if isinstance(plan, SemiJoin):
            return self.is_small(plan.input)
        return False

    def scan(self, plan: Scan) -> Block:
        alias = self.alias("t")
        table = _pinned(plan.source, plan.version)
        outputs: dict[str, exp.Expr] = {f.name: _qualified(f.column, alias) for f in plan.fields}
        if plan.live:
            columns = dict.fromkeys(f.column for f in plan.fields)
            rows = exp.Select(expressions=[nodes.column(c, STORED) for c in columns])
            return Block(outputs, (Source(alias, nodes.aliased(from_live_rows(rows, table, plan.live), alias)),))
        table.set("alias", nodes.alias(alias))
        return Block(outputs, (Source(alias, table),))

    def scan_changes(self, plan: ScanChanges) -> Block:
        alias = self.alias("c")
        arguments = [
            exp.Literal.string(str(plan.source)),
            exp.Literal.number(plan.first),
            exp.Literal.number(plan.last),
        ]
        feed = exp.Table(this=exp.Anonymous(this="TABLE_CHANGES", expressions=arguments))
        feed.set("alias", nodes.alias(alias))
        kind = _qualified("_change_type", alias)
        added = exp.In(this=kind, expressions=[exp.Literal.string(k) for k in ADDED_CHANGES])
        sign = exp.Case(ifs=[exp.If(this=added, true=exp.Literal.number(1))], default=exp.Literal.number(-1))
        outputs: dict[str, exp.Expr] = {f.name: _qualified(f.column, alias) for f in plan.fields}
        weight: exp.Expr = nodes.cast(sign, "bigint")
        if plan.live or any(f.column.lower() == names.PART for f in plan.fields):
            part = _qualified(names.PART, alias)
            is_dead = exp.EQ(this=part, expression=exp.Literal.number(names.TOMBSTONE_PART))
            weight = exp.Case(ifs=[exp.If(this=is_dead, true=exp.Neg(this=weight.copy()))], default=weight)
            as_data = exp.Literal.number(names.DATA_PART)
            for f in plan.fields:
                if f.column.lower() == names.PART:
                    outputs[f.name] = exp.Case(ifs=[exp.If(this=is_dead.copy(), true=as_data)], default=part.copy())
        outputs[names.WEIGHT] = weight
        return Block(outputs, (Source(alias, feed),))

    def scan_kept(self, plan: ScanKept) -> Block:
        alias = self.alias("k")
        table = exp.Table(this=exp.to_identifier(plan.name), alias=nodes.alias(alias))
        outputs: dict[str, exp.Expr] = {f.name: _qualified(f.column, alias) for f in plan.fields}
        return Block(outputs, (Source(alias, table, plan.small),))

    def scan_values(self, plan: ScanValues) -> Block:
        """The texts as they are, each column cast to its type."""
        alias = self.alias("v")
        columns = [f"v{i}" for i, _ in enumerate(plan.fields, 1)]
        tuples = [exp.Tuple(expressions=[_text_literal(value) for value in row]) for row in plan.rows]
        listed = exp.TableAlias(this=exp.to_identifier(alias), columns=[exp.to_identifier(c) for c in columns])
        outputs = {f.name: from_text(nodes.column(c, alias), f.type) for c, f in zip(columns, plan.fields, strict=True)}
        rows: exp.Query = Block(outputs, (Source(alias, exp.Values(expressions=tuples, alias=listed), True),)).select()
        if plan.of is not None and any(f.type == "string" for f in plan.fields):
            rows = exp.union(self._none_of(plan, *plan.of), rows, distinct=False, copy=False)
        return self.closed(rows, plan.column_names, "v", True)

    def _none_of(self, plan: ScanValues, source: RelationName, version: int | None) -> exp.Select:
        """No rows of the table: a union takes from its first branch that a column is of type char(n)."""
        alias = self.alias("t")
        table = _pinned(source, version)
        table.set("alias", nodes.alias(alias))
        columns = {
            f.name: _qualified(f.column, alias) if f.type == "string" else nodes.null(f.type) for f in plan.fields
        }
        return Block(columns, (Source(alias, table),), (exp.false(),)).select()

    def one_row(self, plan: OneRow) -> Block:
        return Block({})

    def filter(self, plan: Filter) -> Block:
        return self.block(plan.input).with_condition(plan.predicate)

    def project(self, plan: Project) -> Block:
        return self.block(plan.input).with_outputs({p.name: p.expression for p in plan.projections})

    def join(self, plan: Join) -> Block:
        block: Block | None = None
        for member in plan.members:
            part = self.block(member)
            # side joins follow all others: rows that a cross join repeats are chosen before it
            if not part.sources or (part.side_joins and not plan.predicates):
                part = self.closed(part.select(), member.column_names)
            block = part if block is None else block.joined(part)
        assert block is not None
        for predicate in plan.predicates:
            block = block.with_condition(predicate)
        return block

    def aggregate(self, plan: Aggregate) -> Block:
        block = self.block(plan.input)
        if any(not block.outputs[g].find(exp.Column) for g in plan.group):  # a constant could read as a position
            block = self.closed(block.select(), plan.input.column_names)
        outputs = {g: block.outputs[g] for g in plan.group}
        outputs.update({m.name: block.substitute(m.call) for m in plan.measures})
        if not outputs:
            raise InternalError("an aggregate without group and measures has no columns")
        select = Block(outputs, block.sources, block.conditions, block.side_joins, block.after).select()
        if plan.group:
            select = select.group_by(*(block.outputs[g].copy() for g in plan.group), copy=False)
        elif not plan.is_global:
            select = select.having(exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(0)))
        return self.closed(select, plan.column_names, "g", self.is_small(plan))

    def union(self, plan: UnionAll) -> exp.Query:
        branches = [self.query(_aligned(m, plan.column_names)) for m in plan.members]
        union = branches[0]
        for branch in branches[1:]:
            union = exp.union(union, branch, distinct=False, copy=False)
        return union

    def union_block(self, plan: UnionAll) -> Block:
        return self.closed(self.union(plan), plan.column_names, "u", self.is_small(plan))

    def semi_join(self, plan: SemiJoin) -> Block:
        return self._side_join("LEFT SEMI", plan.input, plan.keys, plan, keep_columns=False)

    def left_lookup(self, plan: LeftLookup) -> Block:
        return self._side_join("LEFT", plan.input, plan.lookup, plan, keep_columns=True)

    def _side_join(
        self, kind: str, rows: Operator, other: Operator, plan: SemiJoin | LeftLookup, keep_columns: bool
    ) -> Block:
        block = self.block(rows)
        if not block.sources or block.side_joins:
            block = self.closed(block.select(), rows.column_names)
        source, columns = self.source_of(other, "k")
        equal = [
            same(block.outputs[a].copy(), columns[b].copy(), rows.types[a], exact=False, nulls=plan.nulls)
            for a, b in plan.on
        ]
        condition = exp.and_(*equal) if equal else exp.true()
        outputs = {**block.outputs, **columns} if keep_columns else block.outputs
        side = SideJoin(kind, source, condition)
        return Block(outputs, block.sources, block.conditions, (*block.side_joins, side), block.after)

    def left_join(self, plan: LeftJoin) -> Block:
        return self._outer_join(plan, "LEFT")

    def full_join(self, plan: FullJoin) -> Block:
        return self._outer_join(plan, "FULL")

    def _outer_join(self, plan: LeftJoin | FullJoin, side: str) -> Block:
        left, left_columns = self.source_of(plan.left, "l")
        right, right_columns = self.source_of(plan.right, "r")
        both = Block({**left_columns, **right_columns})
        on = nodes.all_of([both.substitute(p) for p in plan.predicates]) if plan.predicates else exp.true()
        select = Block({n: both.outputs[n] for n in plan.column_names}, (left,)).select()
        select.append("joins", exp.Join(this=right.relation, side=side, on=on))
        if right.small and side == "LEFT":
            _broadcast(select, right.alias)
        return self.closed(select, plan.column_names, "j")

    def existence(self, plan: Existence) -> Block:
        """SEMI and ANTI as the joins of these names."""
        if plan.kind is Kind.MARK:
            return self.mark(plan)
        left = self.block(plan.left)
        if not left.sources or left.side_joins:
            left = self.closed(left.select(), plan.left.column_names, "l")
        right, right_columns = self.source_of(plan.right, "e")
        both = Block({**left.outputs, **right_columns})
        on = nodes.all_of([both.substitute(p) for p in plan.predicates]) if plan.predicates else exp.true()
        side = SideJoin(f"LEFT {plan.kind.name}", right, on)
        select = Block(left.outputs, left.sources, left.conditions, (side,)).select()
        return self.closed(select, plan.column_names, "m", self.is_small(plan))

    def mark(self, plan: Existence) -> Block:
        """A left join with the distinct keys of the right side; where keys do not tell, rows with and without a match.

        EXISTS in a select list would say the same, but Spark 4.1 cannot plan it above a UNION.
        """
        here = set(plan.left.column_names)
        own = [p for p in plan.predicates if set(references(p)) <= here]
        told = [one_key_each(p, plan.left, plan.right) for p in equalities(plan.predicates, plan.left, plan.right)]
        pairs = [p for p in told if p]
        if len(own) + len(pairs) < len(plan.predicates):
            return self.closed(self.union(with_and_without(plan)), plan.column_names, "m")
        left, outputs = self.source_of(plan.left, "l")
        right, columns = self.source_of(plan.right, "e")
        inside, keys = Block(columns), [f"k{i}" for i, _ in enumerate(pairs, 1)]
        listed: list[exp.Expr] = [
            exp.Alias(this=inside.substitute(p.right), alias=nodes.name(k)) for k, p in zip(keys, pairs, strict=True)
        ]
        listed.append(exp.Alias(this=exp.true(), alias=nodes.name(plan.mark)))
        distinct = exp.Select(expressions=listed, distinct=exp.Distinct()).from_(right.relation, copy=False)
        alias, around = self.alias("f"), Block(outputs)
        on: list[exp.Expr] = [
            p.kind(this=around.substitute(p.left), expression=_qualified(k, alias))
            for k, p in zip(keys, pairs, strict=True)
        ]
        found: exp.Expr = exp.Not(this=exp.Is(this=_qualified(plan.mark, alias), expression=exp.Null()))
        for condition in own:
            met = exp.Coalesce(this=exp.Paren(this=around.substitute(condition)), expressions=[exp.false()])
            found = exp.And(this=found, expression=met)
        select = Block({**outputs, plan.mark: found}, (left,)).select()
        on_all = nodes.all_of(on) if on else exp.true()
        select.append("joins", exp.Join(this=nodes.aliased(distinct, alias), side="LEFT", on=on_all))
        if right.small:
            _broadcast(select, alias)
        return self.closed(select, plan.column_names, "m")

    def window(self, plan: Windowing) -> Block:
        block = self.block(plan.input)
        if not block.sources or block.side_joins:
            block = self.closed(block.select(), plan.input.column_names)
        outputs = {**block.outputs, **{f.name: block.substitute(f.call) for f in plan.functions}}
        select = Block(outputs, block.sources, block.conditions, block.side_joins, block.after).select()
        return self.closed(select, plan.column_names, "w", self.is_small(plan))

    def generate(self, plan: Generate) -> Block:
        source, columns = self.source_of(plan.input, "r")
        alias = self.alias("made")
        outputs = {**columns, **{c.name: _qualified(c.name, alias) for c in plan.made}}
        select = Block(outputs, (source,)).select()
        generator = Block(columns).substitute(plan.generator)
        select.set("laterals", [lateral_view(generator, alias, [c.name for c in plan.made], plan.outer)])
        return self.closed(select, plan.column_names, "b")

    def repeat(self, plan: Repeat) -> Block:
        source, columns = self.source_of(plan.input, "r")
        weight = columns.pop(names.WEIGHT)
        series = exp.Explode(
            this=exp.Anonymous(this="SEQUENCE", expressions=[nodes.cast(exp.Literal.number(1), "bigint"), weight])
        )
        alias = self.alias("copy")
        select = Block(columns, (source,)).select()
        select.set("laterals", [lateral_view(series, f"{alias}s", [alias])])
        return self.closed(select, plan.column_names, "b")


def lateral_view(generator: exp.Expr, alias: str, columns: list[str], outer: bool = False) -> exp.Lateral:
    named = exp.TableAlias(this=exp.to_identifier(alias), columns=[exp.to_identifier(c) for c in columns])
    return exp.Lateral(this=generator, view=True, outer=outer, alias=named)


def _broadcast(select: exp.Select, alias: str) -> None:
    hint = exp.Anonymous(this="BROADCAST", expressions=[exp.column(alias)])
    select.set("hint", exp.Hint(expressions=[hint]))


def _aligned(member: Operator, wanted: tuple[str, ...]) -> Operator:
    """A union member under the union's column names, so that every branch reads alike."""
    if member.column_names == wanted:
        return member
    from dbt_ivm.operators import Projection, col

    pairs = zip(wanted, member.column_names, strict=True)
    return Project(member, tuple(Projection(new, col(old)) for new, old in pairs))


def _pinned(source: RelationName, version: int | None) -> exp.Table:
    table = source.table()
    if version is not None:
        literal = exp.Literal.number(version)
        table.set("version", exp.Version(this="VERSION", expression=literal, kind="AS OF"))
    return table


def _text_literal(value: str | None) -> exp.Expr:
    return exp.Null() if value is None else nodes.text(value)


def as_text(value: exp.Expr, type_name: str) -> exp.Expr:
    """A text that gives the value back (``from_text``)."""
    if type_name == "string":
        return value
    if type_name == "timestamp":  # as text it would depend on the time zone, and be ambiguous once a year
        value = exp.Anonymous(this="UNIX_MICROS", expressions=[value])
    return nodes.cast(value, "string")


def from_text(value: exp.Expr, type_name: str) -> exp.Expr:
    if type_name == "timestamp":
        return exp.Anonymous(this="TIMESTAMP_MICROS", expressions=[nodes.cast(value, "bigint")])
    return nodes.cast(value, type_name)


def _qualified(column: str, alias: str) -> exp.Column:
    return nodes.column(column, alias)


_BLOCKS: dict[type[Operator], Callable[[Renderer, Any], Block]] = {
    Scan: Renderer.scan,
    ScanChanges: Renderer.scan_changes,
    ScanKept: Renderer.scan_kept,
    ScanValues: Renderer.scan_values,
    OneRow: Renderer.one_row,
    Filter: Renderer.filter,
    Project: Renderer.project,
    Join: Renderer.join,
    Aggregate: Renderer.aggregate,
    UnionAll: Renderer.union_block,
    SemiJoin: Renderer.semi_join,
    LeftLookup: Renderer.left_lookup,
    Repeat: Renderer.repeat,
    LeftJoin: Renderer.left_join,
    FullJoin: Renderer.full_join,
    Existence: Renderer.existence,
    Windowing: Renderer.window,
    Generate: Renderer.generate,
}
