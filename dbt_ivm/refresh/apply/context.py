"""What every way to apply needs, and the parts they share: the state row and its compare-and-set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.analysis.growth import only_adds_rows
from dbt_ivm.analysis.join_graph import Edge
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.catalog.tables import Table
from dbt_ivm.delta.context import DeltaContext
from dbt_ivm.operators import Aggregate, Operator, Reach
from dbt_ivm.optimizer import (
    RULES,
    Rule,
    Verdict,
    apply_rule,
    contract_lookups,
    gather_left_joins,
    judged,
    net_supplements,
)
from dbt_ivm.refresh.apply.staging import Bound, kept_change
from dbt_ivm.refresh.foreign_keys import OFF, TRUST, EdgeFacts, first_reach
from dbt_ivm.refresh.state import LOG_MODE, State
from dbt_ivm.render.merge import (
    case,
    equal,
    fail,
    insert,
    is_of_build,
    number,
    same_key,
    source,
    target,
    update,
    when_matched,
    when_not_matched,
)
from dbt_ivm.render.query import render_query, sql_text
from dbt_ivm.storage.layout import Layout, Shape
from dbt_ivm.storage.stored_rows import StoredRows

DRIFT = "IVM_DRIFT the storage table does not hold what the change removes "
STALE = "IVM_STALE another run refreshed this model first, expected and found: "
DUPLICATE = "IVM_DUPLICATE_KEY "


@dataclass(frozen=True)
class Applied:
    """The statement, and the delta plan it came from (for explain); ``state`` when it says more than was given."""

    way: str
    statement: exp.Expr | str
    delta: Operator | None
    state: State | None = None

    @property
    def sql(self) -> str:
        return self.statement if isinstance(self.statement, str) else sql_text(self.statement)


@dataclass(frozen=True)
class ApplyContext:
    """
    Args:
        few: changed sources of so few rows that their changes are fetched (delta/carried.py).
        tables: what is declared about the tables.
        foreign_keys: the mode of declared foreign keys.
        dangling: rows that referenced nothing before, along the edges where they are counted.
        references: what became of declared foreign keys in this change.
        kept_rows: where the rows to look up of a tree are kept, when they were computed before.
        kept_as: name under which the change was kept, when it was.
        bounds: what a look told about all rows of the change (of appended rows: about new keys).
    """

    layout: Layout
    deltas: DeltaContext
    storage: RelationName
    seq: int
    state: State
    changed: frozenset[RelationName]
    insert_only: frozenset[RelationName]
    small: frozenset[str]
    few: frozenset[RelationName] = frozenset()
    tables: Mapping[RelationName, Table] = field(default_factory=dict)
    rules: tuple[Rule, ...] = RULES
    foreign_keys: str = OFF
    dangling: Mapping[str, int] = field(default_factory=dict)
    references: Mapping[str, EdgeFacts] = field(default_factory=dict)
    kept_rows: Mapping[str, str] = field(default_factory=dict)
    kept_as: str = ""
    bounds: tuple[Bound, ...] = ()

    @cached_property
    def root(self) -> Operator:
        """The operator whose delta is applied: the rows, or the input of the stored aggregate."""
        return self.verdict.plan

    @cached_property
    def verdict(self) -> Verdict:
        """The root, and how it finds rows of outer joins without a match."""
        rows = self.layout.rows
        assert rows is not None
        root = rows.input if isinstance(rows, Aggregate) and self.layout.measures else rows
        root = apply_rule(root, contract_lookups, self.rules, self.tables, self.reach, self.kept_rows, self.once)
        gathered = apply_rule(root, gather_left_joins, self.rules)
        if self.layout.shape is not Shape.KEYED or net_supplements not in self.rules:
            return Verdict(gathered)
        live = self.layout.identity if self.state.mode == LOG_MODE else ()
        return judged(root, StoredRows(self.storage, live), self.deltas, gathered)

    @property
    def once(self) -> frozenset[str]:
        """Edges of which a look told that no key was or is a key of several rows."""
        return frozenset(name for name, facts in self.references.items() if facts.is_once)

    def reach(self, edge: Edge) -> Reach:
        return first_reach(edge, self.foreign_keys, self.dangling)

    @cached_property
    def computed_change(self) -> Operator | None:
        return self.deltas.delta_of(self.root)

    @cached_property
    def change(self) -> Operator | None:
        """The change of the root; read from where it is kept when it is."""
        change = self.computed_change
        return kept_change(self.kept_as, change) if self.kept_as and change is not None else change

    @property
    def relied_on(self) -> str:
        """The declared keys that address stored rows, for errors."""
        return ", ".join(f"{name} {key}" for name, key in self.layout.relied_on)

    @property
    def believes_keys(self) -> bool:
        """Whether new keys are taken to be new without a look at stored rows: the user asked for that."""
        return self.foreign_keys == TRUST

    def with_seen(self, seen: Mapping[str, tuple[str, str]] | None) -> ApplyContext:
        """The commit leaves this behind as the range of stored keys."""
        return replace(self, state=replace(self.state, seen=None if seen is None else dict(seen)))

    @property
    def is_small(self) -> bool:
        """Whether every changed source is known to have changed by few rows."""
        return {str(name) for name in self.changed} <= self.small

    def within_bounds(self, table: str | None = None, prefix: str = "") -> list[exp.Expr]:
        """What is known of all rows the change can match: conditions by which Delta skips files of the storage."""
        return [b.holds(table, f"{prefix}{b.column}" if prefix else "") for b in self.bounds]

    @property
    def required_change(self) -> Operator:
        assert self.change is not None
        return self.change

    @cached_property
    def post(self) -> Operator:
        return self.deltas.post_of(self.root)

    @cached_property
    def only_adds(self) -> bool:
        return only_adds_rows(self.root, self.insert_only, self.changed)

    def query(self, plan: Operator) -> exp.Query:
        return render_query(plan, self.small)

    def with_state_row(
        self,
        data: exp.Query,
        columns: tuple[str, ...],
        expected: exp.Expr | None = None,
        state_values: dict[str, exp.Expr] | None = None,
    ) -> exp.Query:
        """The data rows of a MERGE source, and the state row behind them (NULL in the data columns)."""
        given = state_values or {}
        rows = exp.select(*(nodes.column(c) for c in columns)).from_(nodes.aliased(data, "d"))
        rows = rows.select(
            exp.alias_(nodes.null("string"), names.STATE, quoted=True),
            exp.alias_(nodes.null("bigint"), names.EXPECTED, quoted=True),
            exp.alias_(number(names.DATA_PART), names.PART, quoted=True),
            copy=False,
        )
        state = exp.select(*(exp.alias_(given.get(c, exp.Null()), c, quoted=True) for c in columns)).select(
            exp.alias_(exp.Literal.string(self.state.to_json()), names.STATE, quoted=True),
            exp.alias_(expected or nodes.cast(number(self.seq), "bigint"), names.EXPECTED, quoted=True),
            exp.alias_(number(names.STATE_PART), names.PART, quoted=True),
        )
        return exp.union(rows, state, distinct=False, copy=False)

    def same_part(self) -> exp.Expr:
        return equal(target(names.PART), source(names.PART))

    def same_identity(self) -> list[exp.Expr]:
        """Target and source are the same row, by their identity."""
        return [same_key(k, self.layout.types[k]) for k in self.layout.identity]

    def is_state(self) -> exp.Expr:
        return equal(source(names.PART), names.STATE_PART)

    def is_data(self) -> exp.Expr:
        return equal(source(names.PART), names.DATA_PART)

    def compare_and_set(self) -> exp.When:
        """The state row moves on only from the build and the sequence number that this refresh has read."""
        expected = source(names.EXPECTED)
        following = exp.Add(this=expected, expression=number(1))
        stale = fail(STALE, expected, target(names.SEQ))
        is_known = is_of_build(target(names.STATE), self.state.epoch)
        value = case(exp.and_(equal(target(names.SEQ), expected.copy()), is_known), following, stale)
        return when_matched(self.is_state(), update({names.STATE: source(names.STATE), names.SEQ: value}))

    def state_must_exist(self) -> exp.When:
        return when_not_matched(
            self.is_state(), insert({names.SEQ: nodes.cast(fail(STALE + "no state row"), "bigint")})
        )

    def inserted(self, values: dict[str, exp.Expr]) -> exp.Expr:
        """INSERT of a data row with its bookkeeping columns."""
        return insert({**values, names.PART: number(names.DATA_PART), names.SEQ: number(self.seq + 1)})
