"""A SELECT under construction: tables, joins, conditions, and what each output column is made of.

Selections, projections and joins extend a block, so that a chain of operators prints as one flat SELECT, the way a
person would write it.  Anything that needs the finished rows (grouping, union) closes the block into a subquery.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sqlglot import exp


@dataclass(frozen=True)
class Source:
    """A table or subquery in FROM, under its alias; ``small`` ones get a broadcast hint."""

    alias: str
    relation: exp.Expr
    small: bool = False


@dataclass(frozen=True)
class SideJoin:
    """A semi join or lookup; it follows all inner joins."""

    kind: str
    source: Source
    on: exp.Expr


@dataclass(frozen=True)
class Block:
    outputs: dict[str, exp.Expr]
    sources: tuple[Source, ...] = ()
    conditions: tuple[exp.Expr, ...] = ()
    side_joins: tuple[SideJoin, ...] = ()
    after: tuple[exp.Expr, ...] = field(default=())  # conditions on columns of side joins

    def substitute(self, expression: exp.Expr) -> exp.Expr:
        """The expression with output columns replaced by what they are made of."""
        if isinstance(expression, exp.Column) and not expression.table:
            return self.outputs[expression.name].copy()

        def made_of(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Column) and not node.table:
                return grouped(self.outputs[node.name])
            return node

        return expression.transform(made_of)

    def with_condition(self, predicate: exp.Expr) -> Block:
        condition = self.substitute(predicate)
        lookups = {j.source.alias for j in self.side_joins if j.kind == "LEFT"}
        if lookups & tables_in(condition):
            return replace(self, after=(*self.after, condition))
        return replace(self, conditions=(*self.conditions, condition))

    def with_outputs(self, outputs: dict[str, exp.Expr]) -> Block:
        return replace(self, outputs={n: self.substitute(e) for n, e in outputs.items()})

    def joined(self, other: Block) -> Block:
        return Block(
            {**self.outputs, **other.outputs},
            self.sources + other.sources,
            self.conditions + other.conditions,
            self.side_joins + other.side_joins,
            self.after + other.after,
        )

    def select(self) -> exp.Select:
        """The finished SELECT."""
        select = exp.Select()
        for name, expression in self.outputs.items():
            select = select.select(exp.alias_(expression.copy(), exp.to_identifier(name, quoted=True)), copy=False)
        where = self._add_sources(select) if self.sources else list(self.conditions)
        where += self.after
        if where:
            select = select.where(*where, copy=False)
        return select

    def _add_sources(self, select: exp.Select) -> list[exp.Expr]:
        """FROM and JOINs in an order where each joined source is connected; what is left goes to WHERE.

        Sources are placed, not copied: a block is finished once, and copies of nested subqueries add up.
        """
        order = connected_order(self.sources, self.conditions)
        pending = list(self.conditions)
        available: set[str] = set()
        leftovers: list[exp.Expr] = []
        for position, source in enumerate(order):
            available.add(source.alias)
            ready = [c for c in pending if tables_in(c) <= available]
            pending = [c for c in pending if not tables_in(c) <= available]
            relation = source.relation
            if position == 0:
                select.from_(relation, copy=False)
                leftovers += ready
                continue
            binding = [c for c in ready if len(tables_in(c)) > 1]
            leftovers += [c for c in ready if len(tables_in(c)) <= 1]
            if binding:
                select.join(relation, on=exp.and_(*binding), join_type="INNER", copy=False)
            else:
                select.join(relation, join_type="CROSS", copy=False)
        for side in self.side_joins:
            select.join(side.source.relation, on=side.on.copy(), join_type=side.kind, copy=False)
        small = [s.alias for s in (*order, *(j.source for j in self.side_joins)) if s.small]
        if small and len(order) + len(self.side_joins) > 1:
            hint = exp.Anonymous(this="BROADCAST", expressions=[exp.column(a) for a in small])
            select.set("hint", exp.Hint(expressions=[hint]))
        return leftovers


def connected_order(sources: tuple[Source, ...], conditions: tuple[exp.Expr, ...]) -> list[Source]:
    """Small sources first, then whatever a condition connects to those already placed."""
    rest = sorted(sources, key=lambda s: not s.small)
    order = [rest.pop(0)]
    while rest:
        placed = {s.alias for s in order}
        linked = [
            s for s in rest if any(s.alias in tables_in(c) and tables_in(c) <= placed | {s.alias} for c in conditions)
        ]
        chosen = linked[0] if linked else rest[0]
        rest.remove(chosen)
        order.append(chosen)
    return order


def tables_in(expression: exp.Expr) -> set[str]:
    if isinstance(expression, exp.Column):
        return {expression.table}
    return {c.table for c in expression.find_all(exp.Column)}


def grouped(expression: exp.Expr) -> exp.Expr:
    """A copy that can stand inside another expression."""
    binary = (exp.Binary, exp.Not, exp.Between, exp.In, exp.Is)
    copied = expression.copy()
    return exp.Paren(this=copied) if isinstance(copied, binary) else copied
