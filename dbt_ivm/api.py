"""Planning without dbt and Spark: SQL text and facts in, a RefreshPlan out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
from dbt_ivm.refresh.view import compile_view
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
        changes: per changed source (version in the view, version now); None plans the first build.
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
    catalog = Catalog.of(tables)
    chosen = Options.of(options or {})
    view = compile_view(sql, catalog, chosen, rules=rules)
    mode = choose(chosen, view.layout).mode
    only_inserts = {RelationName.parse(n) for n in insert_only}
    moved = {RelationName.parse(n): window for n, window in (changes or {}).items()}
    fixed = {RelationName.parse(n): v for n, v in (versions or {}).items()}
    pins: dict[RelationName, Pin] = {}
    for known in view.tables:
        if known.name in moved:
            before, now = moved[known.name]
            change = SourceChange(RowCounts(), insert_only=known.name in only_inserts)
            pins[known.name] = Pin(SourceState(now, ""), before, change)
        else:
            pins[known.name] = Pin(SourceState(fixed.get(known.name, 0) if known.versioned else None, ""))
    storage = RelationName.parse(model + STORAGE_SUFFIX)
    before_state = (
        None if changes is None else State(seq, view.fingerprint, {}, mode=mode, dangling=dict(dangling or {}))
    )
    after = following_state(
        before_state,
        view.fingerprint,
        {str(n): p.current for n, p in pins.items()},
        storage_version=seq,
        mode=mode,
        seen=None if changes is None or seen is None else dict(seen),
    )
    if changes is None:
        decision = Decision(CREATE, view.refusal.reason if view.refusal else "")
    elif view.refusal:
        decision = Decision("full", view.refusal.reason)
    else:
        decision = Decision(INCREMENTAL if moved else NONE)
    return plan_refresh(
        view, Target(storage, TableOptions()), decision, pins, before_state, after, keeping or Keeping()
    )
