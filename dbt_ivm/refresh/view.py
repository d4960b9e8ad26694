"""A model's query, compiled: plan, storage layout, fingerprint; or the reason why it has no incremental plan."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.analysis.float_sums import computed_again
from dbt_ivm.auxiliary.subtrees import split_subtrees
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.catalog.tables import Catalog, Table, View
from dbt_ivm.errors import Refusal
from dbt_ivm.frontend.lower import lower
from dbt_ivm.frontend.settle_ties import settle_shared_ties, settle_ties
from dbt_ivm.frontend.unsteady import ALWAYS_DIFFERENT, clocks, unsteady
from dbt_ivm.names import AUXILIARY_SUFFIX
from dbt_ivm.operators import Operator, Scan
from dbt_ivm.optimizer import EARLY_RULES, RULES, Rule, apply_rule, contract_lookups, net_supplements, prune_columns
from dbt_ivm.refresh.foreign_keys import VERIFY
from dbt_ivm.refresh.options import SUBTREES, Options
from dbt_ivm.storage.layout import Layout, Shape, choose_layout, opaque_layout
from dbt_ivm.storage.live_rows import STORED, from_live_rows

#: Part of every fingerprint: storage written by another planner is rebuilt, not guessed at.
PLANNER_VERSION = 4

#: Compiled views that a process remembers.
MOST_COMPILED = 256


@dataclass(frozen=True)
class Auxiliary:
    """A part of a view that is kept as a view of its own, in a storage table of that name."""

    name: RelationName
    view: CompiledView


@dataclass(frozen=True)
class CompiledView:
    """``auxiliary`` are refreshed before it, in this order.

    Args:
        unsteady: why the result of a query without a plan may change although no source did.
        below: texts of the views that such a query reads.
    """

    sql: str
    plan: Operator | None
    layout: Layout
    tables: tuple[Table, ...]
    refusal: Refusal | None = None
    notes: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = RULES
    foreign_keys: str = VERIFY
    auxiliary: tuple[Auxiliary, ...] = ()
    unsteady: Refusal | None = None
    below: tuple[str, ...] = ()

    @property
    def is_opaque(self) -> bool:
        return self.layout.shape is Shape.OPAQUE

    @cached_property
    def advice(self) -> tuple[str, ...]:
        """What explain notes about the view: what is ignored, and what would make its refreshes cheaper."""
        found = list(self.notes)
        if self.refusal is not None and self.refusal.remedy:
            found.append(f"to refresh incrementally: {self.refusal.remedy}")
        keyless = [str(t.name) for t in self.tables if not t.keys] if self.layout.shape is Shape.BAG else []
        if keyless:
            found.append(
                "nothing identifies the rows, so they are compared in all columns; declare a primary key of "
                + " and ".join(keyless)
            )
        sums = computed_again(self.layout.rows) if self.layout.rows is not None else ()
        if sums:
            found.append(
                f"{' and '.join(sums)}: the last digits of floating point depend on the order of addition; when a "
                "refresh does not find a stored row by them again, the model is rebuilt. Sum decimals instead"
                + (", or declare keys" if self.layout.shape is Shape.BAG else "")
            )
        return tuple(found)

    @cached_property
    def fingerprint(self) -> str:
        """Changes exactly when the stored rows would mean something else."""
        parts = {
            "planner": PLANNER_VERSION,
            "shape": self.layout.shape.value,
            "rows": self.layout.rows.explain() if self.layout.rows else self.sql,
            "types": _types(self.layout.rows) if self.layout.rows else [],
            "identity": self.layout.identity,
            "facade": [str(p) for p in self.layout.facade],
            "filter": self.layout.facade_filter.sql(dialect="spark") if self.layout.facade_filter else "",
        }
        if self.is_opaque:
            parts["below"] = self.below
        if self.auxiliary:
            parts["auxiliary"] = [a.view.fingerprint for a in self.auxiliary]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]

    def facade_select(
        self,
        storage: exp.Expr,
        outputs: tuple[tuple[str, str], ...] = (),
        token: str = "",
        live: bool = False,
    ) -> exp.Select:
        """The query's rows from the storage table; ``token`` becomes a comment in the text.

        Args:
            live: the table may hold tombstones.
            outputs: names (as the user wrote them) and Spark types of the query's columns; types make computed
                columns exact.
        """
        shown = {n.lower(): (n, t) for n, t in outputs}
        select = exp.Select()
        for projection in self.layout.facade:
            name, kind = shown.get(projection.name, (projection.name, ""))
            value = projection.expression.copy()
            if kind and not projection.is_reference and "struct<" not in kind:  # a struct's text may be cut short
                value = nodes.cast(value, kind)
            select.select(exp.alias_(value, nodes.name(name)), copy=False)
        if live:
            assert isinstance(storage, exp.Table)
            select = from_live_rows(select, storage, self.layout.identity)
        else:
            data = exp.EQ(this=nodes.column(names.PART), expression=exp.Literal.number(names.DATA_PART))
            if isinstance(storage, exp.Table):  # as over live rows: models downstream are the same over both
                storage.set("alias", nodes.alias(STORED))
            select = select.from_(storage).where(data, copy=False)
        if token:
            select.args["where"].this.add_comments([token])
        if self.layout.facade_filter is not None:
            select = select.where(self.layout.facade_filter.copy(), copy=False)
        return select


def _types(plan: Operator) -> list[list[str]]:
    own = [[str(plan.source), f.column, f.type] for f in plan.fields] if isinstance(plan, Scan) else []
    return own + [t for below in plan.inputs for t in _types(below)]


@lru_cache(maxsize=MOST_COMPILED)
def compile_view(
    sql: str,
    catalog: Catalog,
    options: Options = Options(),  # noqa: B008 - frozen
    visible: tuple[str, ...] = (),
    distrusted: tuple[str, ...] = (),
    rules: tuple[Rule, ...] = RULES,
    facade: RelationName | None = None,
) -> CompiledView:
    """Text and facts in, compiled view out; no I/O, so the same arguments are compiled once per process.

    Args:
        visible: the query's output columns, needed only when the query cannot be lowered.
        distrusted: declared keys found violated, as ``table (columns)``; they are not used.
        facade: the model's own name, after which parts that are kept apart are named; without it none are.
    """
    rules = tuple(r for r in rules if r.__name__ not in options.rules_off)
    catalog = Catalog.of(_without_keys(r, distrusted) if isinstance(r, Table) else r for r in catalog.relations)
    try:
        if options.refresh == "full":
            raise Refusal("asked_full")
        lowered = lower(sql, catalog)
    except Refusal as refusal:
        return _opaque(sql, catalog, visible, refusal)
    plan = settle_shared_ties(lowered.plan)
    for rule in EARLY_RULES:
        plan = apply_rule(plan, rule, rules)
    layout = choose_layout(plan, lowered.tables, options.float_sums == "fast", net_supplements in rules)
    assert layout.rows is not None
    layout = replace(layout, rows=apply_rule(layout.rows, prune_columns, rules))
    tables, auxiliary = lowered.tables, tuple[Auxiliary, ...]()
    if options.auxiliary == SUBTREES and facade is not None and contract_lookups in rules:
        layout, tables, auxiliary = _with_subtrees(layout, tables, options, rules, facade)
    assert layout.rows is not None
    layout = replace(layout, rows=settle_ties(layout.rows))
    return CompiledView(sql, plan, layout, tables, None, lowered.notes, rules, options.foreign_keys, auxiliary)


def _opaque(sql: str, catalog: Catalog, visible: tuple[str, ...], refusal: Refusal) -> CompiledView:
    """A query without a plan; what its result depends on is found all the same."""
    views = [r for r in catalog.relations if isinstance(r, View)]
    tables = (*(r for r in catalog.relations if isinstance(r, Table)), *clocks(sql, catalog))
    # of another model's facade the text follows how its table is kept; what it means changes with a commit there
    below = tuple(sorted(f"{v.name} {v.namespace} {v.output}: {v.sql}" for v in views if names.PART not in v.sql))
    changes = refusal if refusal.construct in ALWAYS_DIFFERENT else unsteady(sql, catalog)
    return CompiledView(sql, None, opaque_layout(visible), tables, refusal, unsteady=changes, below=below)


def _with_subtrees(
    layout: Layout, tables: tuple[Table, ...], options: Options, rules: tuple[Rule, ...], facade: RelationName
) -> tuple[Layout, tuple[Table, ...], tuple[Auxiliary, ...]]:
    """The stored rows over subtrees that are kept apart."""
    assert layout.rows is not None
    first = facade.sibling(facade.name + AUXILIARY_SUFFIX)
    # a row without a match in a partial subtree hides whether the user's own key holds
    reports = options.foreign_keys == VERIFY and options.on_key_violation == "error"
    split = split_subtrees(layout.rows, tables, first, lambda p: apply_rule(p, prune_columns, rules), not reports)
    auxiliary = []
    for subtree in split.subtrees:
        own = choose_layout(subtree.rows, subtree.tables)
        if own.identity != subtree.identity or own.rows is None:
            return layout, tables, ()  # another key than the edge's identifies the rows
        own = replace(own, rows=apply_rule(own.rows, prune_columns, rules))
        view = CompiledView("", subtree.rows, own, subtree.tables, rules=rules, foreign_keys=options.foreign_keys)
        auxiliary.append(Auxiliary(subtree.table.name, view))
    read = {t.name for t in split.tables}
    relied_on = tuple((name, key) for name, key in layout.relied_on if name in read)
    return replace(layout, rows=split.rows, relied_on=relied_on), split.tables, tuple(auxiliary)


def _without_keys(table: Table, distrusted: tuple[str, ...]) -> Table:
    return replace(table, keys=tuple(k for k in table.keys if f"{table.name} {k}" not in distrusted))
