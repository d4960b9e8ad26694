"""What DESCRIBE TABLE EXTENDED says about a relation, whatever kind it is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from dbt_ivm import nodes
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.catalog.tables import TableColumn
from dbt_ivm.types import normalise

#: Storage tables carry their identity in this property, so that models downstream know a proven key.
IDENTITY_PROPERTY = "dbt_ivm.identity"


@dataclass(frozen=True)
class Description:
    name: RelationName
    columns: tuple[TableColumn, ...]
    kind: str = "TABLE"
    provider: str = ""
    properties: str = ""
    view_text: str = ""
    view_namespace: tuple[str, ...] = ()
    view_output: tuple[str, ...] = field(default_factory=tuple)

    @property
    def is_view(self) -> bool:
        return "VIEW" in self.kind

    @property
    def is_delta(self) -> bool:
        return self.provider == "delta"

    def has_property(self, name: str, value: str = "true") -> bool:
        return re.search(rf"[\[,]\s*{re.escape(name)}={value}\s*[,\]]", self.properties) is not None

    def property_value(self, name: str) -> str:
        match = re.search(rf"[\[,]\s*{re.escape(name)}=([^,\]]*)", self.properties)
        return match[1] if match else ""


def describe_statement(name: RelationName) -> str:
    return f"DESCRIBE TABLE EXTENDED {name}"


def types_statement(name: RelationName, columns: Sequence[str]) -> str:
    """One row: the whole types of these columns, whatever is in them; DESCRIBE cuts those of long structs short.

    >>> types_statement(RelationName.parse("db.t"), ["a"])
    'SELECT TYPEOF(ANY_VALUE(`a`)) AS `a` FROM db.t WHERE FALSE'
    """
    shown = [
        exp.alias_(exp.Anonymous(this="TYPEOF", expressions=[exp.AnyValue(this=nodes.column(c))]), nodes.name(c))
        for c in columns
    ]
    select = exp.Select(expressions=shown).from_(name.table(), copy=False)
    return select.where(exp.false(), copy=False).sql(dialect="spark")


def read_description(name: RelationName, rows: Sequence[Mapping[str, Any]]) -> Description:
    columns: list[TableColumn] = []
    details: dict[str, str] = {}
    in_columns = True
    for row in rows:
        key, value = str(row["col_name"] or "").strip(), str(row["data_type"] or "")
        if not key or key.startswith("#"):
            in_columns = False
            continue
        if in_columns:
            columns.append(TableColumn(key, normalise(value)))
        else:
            details.setdefault(key, value)
    return Description(
        name,
        tuple(columns),
        kind=details.get("Type", "TABLE").upper(),
        provider=details.get("Provider", "").lower(),
        properties=details.get("Table Properties", ""),
        view_text=details.get("View Text", ""),
        view_namespace=tuple(p.strip("` ") for p in details.get("View Catalog and Namespace", "").split(".") if p),
        view_output=tuple(re.findall(r"`((?:[^`]|``)*)`", details.get("View Query Output Columns", ""))),
    )
