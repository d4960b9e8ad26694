"""Columns of generators named as Spark names them where the query does not, so that names can be resolved.

    LATERAL VIEW explode(arr) q        →   q AS col              explode(m) of a map   →   key, value
    LATERAL VIEW posexplode(arr)       →   … AS pos, col         inline(structs)       →   their fields
    stack(2, a, b, c)                  →   col0, col1            json_tuple(b, 'x')    →   c0

It takes the argument's type, told from the tables of the same FROM.  What stays without names can only be refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from dbt_ivm.catalog.tables import Table, View
from dbt_ivm.nested_types import element_type, map_types, struct_fields
from dbt_ivm.types import function_names, infer

ALIAS = "ivm_generated_"
EXPLODES = (exp.Explode, exp.ExplodeOuter)
WITH_POSITION = (exp.Posexplode, exp.PosexplodeOuter)

Types = dict[str, str]


def name_generators(query: exp.Query, relations: dict[str, Table | View]) -> None:
    for number, source in enumerate(_generators(query)):
        alias = source.args.get("alias") or exp.TableAlias()
        source.set("alias", alias)
        if not alias.name:
            alias.set("this", exp.to_identifier(f"{ALIAS}{number}"))
    known = _Known.of(query, relations)
    for select in query.find_all(exp.Select):
        known.types_in(select)


def unnamed_generator(query: exp.Query) -> exp.Expr | None:
    """A generator in FROM whose columns have no names."""
    return next((s for s in _generators(query) if not s.args["alias"].columns), None)


def usual_columns(generator: exp.Expr, types: Types) -> list[tuple[str, str]]:
    """Names and types (where known) of the columns; none if the argument's type is not known."""
    called = function_names(generator)
    if "stack" in called:
        rows, *values = generator.iter_expressions()
        is_counted = isinstance(rows, exp.Literal) and rows.is_int and int(rows.name) > 0
        return [(f"col{i}", "") for i in range(-(-len(values) // int(rows.name)))] if is_counted else []
    if "json_tuple" in called:
        return [(f"c{i}", "string") for i in range(len(generator.expressions) - 1)]
    first = next(generator.iter_expressions(), None)
    kind = infer(first, types) if first is not None else ""
    if isinstance(generator, exp.Inline) or "inline_outer" in called:
        return [(name.lower(), t) for name, t in struct_fields(element_type(kind))]
    position = [("pos", "int")] if isinstance(generator, WITH_POSITION) else []
    if not isinstance(generator, (*EXPLODES, *WITH_POSITION)):
        return []
    entries = map_types(kind)
    if entries:
        return [*position, ("key", entries[0]), ("value", entries[1])]
    is_array = isinstance(first, (exp.Array, exp.GenerateSeries)) or kind.startswith("array<")
    return [*position, ("col", element_type(kind))] if is_array else []


def _generators(query: exp.Query) -> Iterator[exp.Expr]:
    return (s for s in query.find_all(exp.Lateral, exp.Table) if isinstance(s.this, exp.Func))


@dataclass(frozen=True)
class _Known:
    """What a name in FROM may stand for; a name that several WITH give is left out."""

    relations: dict[str, Table | View]
    ctes: dict[str, exp.CTE]

    @staticmethod
    def of(query: exp.Query, relations: dict[str, Table | View]) -> _Known:
        found = list(query.find_all(exp.CTE))
        names = [c.alias for c in found]
        return _Known(relations, {c.alias: c for c in found if names.count(c.alias) == 1})

    def types_in(self, select: exp.Select) -> Types:
        """Types of the columns of a FROM by their names; a name of several columns has none."""
        types: Types = {}
        from_ = select.args.get("from_")
        sources = [from_.this] if from_ is not None else []
        sources += [join.this for join in select.args.get("joins") or ()] + list(select.args.get("laterals") or ())
        for source in sources:
            for name, kind in self._columns_of(source, types):
                types[name] = kind if types.get(name, kind) == kind else ""
        return types

    def _columns_of(self, source: exp.Expr, before: Types) -> list[tuple[str, str]]:
        if isinstance(source, (exp.Lateral, exp.Table)) and isinstance(source.this, exp.Func):
            found = usual_columns(source.this, before)
            if not source.args["alias"].columns:
                source.args["alias"].set("columns", [exp.to_identifier(name) for name, _ in found])
        elif isinstance(source, exp.Table) and source.name in self.relations:
            found = [(c.name.lower(), c.type) for c in self.relations[source.name].columns]
        elif isinstance(source, exp.Table) and source.name in self.ctes:
            found = self._columns_of(self.ctes[source.name], {})
        elif isinstance(source, (exp.Subquery, exp.CTE)):
            first = source.this
            while isinstance(first, (exp.SetOperation, exp.Subquery)):
                first = first.this
            inside = self.types_in(first) if isinstance(first, exp.Select) else {}
            found = [(i.alias_or_name, infer(i.unalias(), inside)) for i in getattr(first, "selects", ())]
        else:
            found = []
        alias = source.args.get("alias")
        named = [c.name for c in alias.columns] if alias is not None else []
        return [(new, kind) for new, (_, kind) in zip(named, found, strict=False)] if named else found
