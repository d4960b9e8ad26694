"""Planning without dbt and Spark: SQL text and facts in, a RefreshPlan out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.catalog.tables import Catalog, ForeignKey, Key, Table, TableColumn, View
from dbt_ivm.names import STORAGE_SUFFIX
from dbt_ivm.optimizer import RULES, Rule
from dbt_ivm.refresh.choose import choose
from dbt_ivm.refresh.decide import CREATE, INCREMENTAL, NONE, Decision
from dbt_ivm.refresh.keeping import Keeping
from dbt_ivm.refresh.options import Options
from dbt_ivm.refresh.plan import RefreshPlan, Target, following_state, plan_refresh
from dbt_ivm.refresh.state import Pin, RowCounts, SourceChange, SourceState, State
from dbt_ivm.refresh.view import CompiledView, compile_view
from dbt_ivm.storage.delta_format import TableOptions


def table(
    name: str,
    columns: Mapping[str, str],
    primary_key: Iterable[str] = (),
    versioned: bool = True,
    foreign_keys: Iterable[tuple[Iterable[str], str, Iterable[str]]] = (),
) -> Table:
    """A table for the catalog; a foreign key is (columns, table, its columns).

    >>> table("shop.orders", {"id": "bigint"}, primary_key=["id"]).keys[0].columns
    ('id',)
    """
    key = tuple(primary_key)
    return Table(
        RelationName.parse(name),
        tuple(TableColumn(n, t) for n, t in columns.items()),
        keys=(Key(key),) if key else (),
        foreign_keys=tuple(ForeignKey(tuple(c), RelationName.parse(to), tuple(k)) for c, to, k in foreign_keys),
        versioned=versioned,
    )


def plan_view(
    sql: str,
    tables: Iterable[Table | View],
    *,
    model: str = "model",
    changes: Mapping[str, tuple[int, int]] | None = None,
    versions: Mapping[str, int] | None = None,
    insert_only: Iterable[str] = (),
    options: Mapping[str, Any] | None = None,
    seq: int = 1,
    dangling: Mapping[str, int] | None = None,
    seen: Mapping[str, tuple[str, str]] | None = None,
    keeping: Keeping | None = None,
    rules: tuple[Rule, ...] = RULES,
) -> RefreshPlan:
    """Plan one refresh of a query.

    Args:
        sql: the model's compiled SQL, Spark dialect.
        tables: the relations it reads.
        model: name of the model; storage is ``<model>__ivm``.
        changes: per changed source (version in the view, version now); None plans the first build.  An auxiliary view
            changes when one of its sources does.
        versions: pinned versions of unchanged sources (default 0).
        insert_only: changed sources that only gained rows.
        options: as ``meta.ivm`` of a model.
        seq: sequence number in the storage table.
        dangling: rows that referenced nothing before, along each declared foreign key.
        seen: range of the stored keys, when known (``refresh/apply/seen.py``).
        keeping: names of what is kept, and what looks at it told (``refresh/keeping.py``).

    >>> orders = table("shop.orders", {"id": "bigint", "amount": "decimal(10,2)"})
    >>> plan = plan_view("select sum(amount) as total from shop.orders", [orders], changes={"shop.orders": (3, 5)})
    >>> plan.strategy, plan.way
    ('incremental', 'merge by group')
    """
    chosen = Options.of(options or {})
    facade = RelationName.parse(model)
    view = compile_view(sql, Catalog.of(tables), chosen, rules=rules, facade=facade)
    asked = _Asked(chosen, changes, versions or {}, frozenset(insert_only), seq, dangling, seen, keeping or Keeping())
    below: list[RefreshPlan] = []
    for part in view.auxiliary:
        read = {str(t.name) for t in part.view.tables}
        own = {n: window for n, window in (asked.changes or {}).items() if str(RelationName.parse(n)) in read}
        below.append(_plan(part.view, part.name, replace(asked, changes=own if changes is not None else None)))
        if below[-1].strategy == INCREMENTAL and changes is not None:
            asked = replace(asked, changes={str(part.name): (seq, seq + 1), **(asked.changes or {})})
    plan = _plan(view, facade.sibling(facade.name + STORAGE_SUFFIX), asked)
    return replace(plan, auxiliary=tuple(below))


@dataclass(frozen=True)
class _Asked:
    """The facts of a plan that was asked for; see ``plan_view``."""

    options: Options
    changes: Mapping[str, tuple[int, int]] | None
    versions: Mapping[str, int]
    insert_only: frozenset[str]
    seq: int
    dangling: Mapping[str, int] | None
    seen: Mapping[str, tuple[str, str]] | None
    keeping: Keeping


def _plan(view: CompiledView, storage: RelationName, asked: _Asked) -> RefreshPlan:
    mode = choose(asked.options, view.layout).mode
    only_inserts = {RelationName.parse(n) for n in asked.insert_only}
    changed = {RelationName.parse(n): window for n, window in (asked.changes or {}).items()}
    fixed = {RelationName.parse(n): v for n, v in asked.versions.items()}
    pins: dict[RelationName, Pin] = {}
    for known in view.tables:
        if known.name in changed:
            before, now = changed[known.name]
            change = SourceChange(RowCounts(), insert_only=known.name in only_inserts)
            pins[known.name] = Pin(SourceState(now, ""), before, change)
        else:
            pins[known.name] = Pin(SourceState(fixed.get(known.name, 0) if known.versioned else None, ""))
    is_build = asked.changes is None
    before_state = (
        None if is_build else State(asked.seq, view.fingerprint, {}, mode=mode, dangling=dict(asked.dangling or {}))
    )
    after = following_state(
        before_state,
        view.fingerprint,
        {str(n): p.current for n, p in pins.items()},
        storage_version=asked.seq,
        mode=mode,
        seen=None if is_build or asked.seen is None else dict(asked.seen),
    )
    if is_build:
        decision = Decision(CREATE, view.refusal.reason if view.refusal else "")
    elif view.refusal:
        decision = Decision("full", view.refusal.reason)
    else:
        decision = Decision(INCREMENTAL if changed else NONE)
    return plan_refresh(view, Target(storage, TableOptions()), decision, pins, before_state, after, asked.keeping)
