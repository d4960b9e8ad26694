"""A SELECT under construction: tables, joins, conditions, and what each output column is made of.

Selections, projections and joins extend a block, so that a chain of operators prints as one flat SELECT, the way a
person would write it.  Anything that needs the finished rows (grouping, union) closes the block into a subquery.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.nodes import copied, grouped


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
            return copied(self.outputs[nodes.column_name(expression)])
        return _made_of(expression, self.outputs)

    def with_condition(self, predicate: exp.Expr) -> Block:
        condition = self.substitute(predicate)
        lookups = {j.source.alias for j in self.side_joins if j.kind == "LEFT"}
        if lookups & tables_in(condition):
            return replace(self, after=(*self.after, condition))
        return replace(self, conditions=(*self.conditions, condition))

    def with_outputs(self, outputs: dict[str, exp.Expr]) -> Block:
        """Plain references share their node until the SELECT is finished, where every output is copied."""
        return replace(self, outputs={n: self._output(e) for n, e in outputs.items()})

    def _output(self, expression: exp.Expr) -> exp.Expr:
        if isinstance(expression, exp.Column) and not expression.args.get("table"):
            return self.outputs[nodes.column_name(expression)]
        return self.substitute(expression)

    def joined(self, other: Block) -> Block:
        return Block(
            {**self.outputs, **other.outputs},
            self.sources + other.sources,
            self.conditions + other.conditions,
            self.side_joins + other.side_joins,
            self.after + other.after,
        )

    def select(self) -> exp.Select:
        """The finished SELECT; rows without columns get one, because SQL has no others."""
        outputs = self.outputs or {names.NO_COLUMN: exp.Literal.number(1)}
        select = exp.Select(
            expressions=[exp.Alias(this=copied(e), alias=nodes.name(name)) for name, e in outputs.items()]
        )
        where = self._add_sources(select) if self.sources else list(self.conditions)
        where += self.after
        if where:
            select.set("where", exp.Where(this=nodes.all_of(where)))
        return select

    def _add_sources(self, select: exp.Select) -> list[exp.Expr]:
        """FROM and JOINs in an order where each joined source is connected; what is left goes to WHERE.

        Sources are placed, not copied: a block is finished once, and copies of nested subqueries add up.
        """
        pending = [(condition, tables_in(condition)) for condition in self.conditions]
        order = connected_order(self.sources, [tables for _, tables in pending])
        select.set("from_", exp.From(this=order[0].relation))
        available: set[str] = set()
        leftovers: list[exp.Expr] = []
        for position, source in enumerate(order):
            available.add(source.alias)
            ready = [(c, tables) for c, tables in pending if tables <= available]
            pending = [(c, tables) for c, tables in pending if not tables <= available]
            if position == 0:
                leftovers += [c for c, _ in ready]
                continue
            binding = [c for c, tables in ready if len(tables) > 1]
            leftovers += [c for c, tables in ready if len(tables) <= 1]
            on = nodes.all_of(binding) if binding else None
            select.append("joins", exp.Join(this=source.relation, kind="INNER" if on else "CROSS", on=on))
        for side in self.side_joins:
            kind = side.kind.removeprefix("LEFT").strip() or None
            select.append("joins", exp.Join(this=side.source.relation, side="LEFT", kind=kind, on=side.on.copy()))
        small = [s.alias for s in (*order, *(j.source for j in self.side_joins)) if s.small]
        if small and len(order) + len(self.side_joins) > 1:
            hint = exp.Anonymous(this="BROADCAST", expressions=[exp.column(a) for a in small])
            select.set("hint", exp.Hint(expressions=[hint]))
        return leftovers


def _made_of(node: exp.Expr, outputs: dict[str, exp.Expr]) -> exp.Expr:
    """A new tree with columns replaced; one pass, because planning does this for every predicate of every branch."""
    if isinstance(node, exp.Column) and not node.args.get("table"):
        return grouped(outputs[nodes.column_name(node)])

    def below(value: object) -> object:
        if isinstance(value, exp.Expr):
            return _made_of(value, outputs)
        return [below(v) for v in value] if isinstance(value, list) else value

    new = type(node)(**{name: below(value) for name, value in node.args.items()})
    new.comments, new._meta, new._type = node.comments, node._meta, node._type
    return new


def connected_order(sources: tuple[Source, ...], connections: list[set[str]]) -> list[Source]:
    """A small source first, then whatever a condition (given by its tables) connects to those already placed.

    A condition on one table connects nothing.

    >>> change, facts, orders = Source("c", exp.table_("c"), True), *(Source(n, exp.table_(n)) for n in ("l", "o"))
    >>> [s.alias for s in connected_order((facts, orders, change), [{"l", "o"}, {"o", "c"}, {"l"}])]
    ['c', 'o', 'l']
    """
    rest = sorted(sources, key=lambda s: not s.small)
    connections = [tables for tables in connections if len(tables) > 1]
    order = [rest.pop(0)]
    while rest:
        placed = {s.alias for s in order}
        linked = [s for s in rest if any(s.alias in c and c <= placed | {s.alias} for c in connections)]
        chosen = linked[0] if linked else rest[0]
        rest.remove(chosen)
        order.append(chosen)
    return order


def tables_in(expression: exp.Expr) -> set[str]:
    if isinstance(expression, exp.Column):
        return {expression.table}
    return {c.table for c in expression.find_all(exp.Column)}
