"""The stored rows of a view as an operator, for rules that ask them instead of the tables."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from dbt_ivm import names
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.delta.weights import weighted
from dbt_ivm.operators import Field, Filter, Operator, Project, Scan, col


@dataclass(frozen=True)
class StoredRows:
    """``live``: the identity of a table that is kept by log, whose dead rows do not count."""

    storage: RelationName
    live: tuple[str, ...] = ()

    def rows(self, fields: tuple[Field, ...]) -> Operator:
        """These columns of all data rows, each row with the weight 1."""
        part = Field(names.PART, names.PART, "int")
        scan = Scan(self.storage, (*fields, part), live=self.live)
        data = Filter(scan, exp.EQ(this=col(names.PART), expression=exp.Literal.number(names.DATA_PART)))
        return weighted(Project.keeping(data, tuple(f.name for f in fields)))
