"""Delta Lake as a storage format: how its table is created, which properties it needs and why."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from dbt_ivm import names, nodes
from dbt_ivm.catalog.relation_name import RelationName
from dbt_ivm.errors import UserError

FORMAT = "delta"

#: Change feed: models downstream read it.  Deletion vectors: a MERGE then writes changed rows, not whole files.
PROPERTIES = {"delta.enableChangeDataFeed": "true", "delta.enableDeletionVectors": "true"}


@dataclass(frozen=True)
class TableOptions:
    """dbt-spark's own table configs that apply to the storage table."""

    partition_by: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    location: str = ""
    comment: str = ""

    def check(self, stored: tuple[str, ...]) -> None:
        missing = [c for c in self.partition_by if c.lower() not in stored]
        if missing:
            raise UserError(
                "IVM_PARTITION_BY",
                f"partition_by names {', '.join(missing)}, which is not stored as a column; "
                f"possible: {', '.join(c for c in stored if not names.is_reserved(c))}",
            )


def create_clause(storage: RelationName, options: TableOptions) -> str:
    """Everything of the CREATE statement up to AS."""
    partitions = [nodes.name(c).sql(dialect="spark") for c in (names.PART, *options.partition_by)]
    properties = {**options.properties, **PROPERTIES}
    pairs = [f"{_literal(k)} = {_literal(str(v))}" for k, v in sorted(properties.items())]
    lines = [
        f"CREATE OR REPLACE TABLE {storage}",
        f"USING {FORMAT}",
        f"PARTITIONED BY ({', '.join(partitions)})",
    ]
    if options.location:
        lines.append(f"LOCATION {_literal(options.location)}")
    if options.comment:
        lines.append(f"COMMENT {_literal(options.comment)}")
    lines.append(f"TBLPROPERTIES ({', '.join(pairs)})")
    return "\n".join(lines)


def insert_rows(storage: RelationName, query: str, options: dict[str, str]) -> str:
    """INSERT with options of this one commit (session settings would reach other threads)."""
    return f"INSERT INTO {storage} WITH ({_pairs(options)}) BY NAME\n{query}"


def replace_rows(storage: RelationName, query: str, options: dict[str, str]) -> str:
    """All rows replaced in one commit that changes none for readers: the change feed stays silent."""
    silent = {**options, "dataChange": "false", "partitionOverwriteMode": "static"}
    return f"INSERT OVERWRITE {storage} WITH ({_pairs(silent)}) BY NAME\n{query}"


def commit_options(epoch: int, seq: int, metadata: str) -> dict[str, str]:
    """Compare-and-set by Delta itself: of all commits with this sequence number at most one is written.

    A later one is skipped, one at the same time fails.  The state stands in the commit too, where the next refresh
    finds it without reading the table.
    """
    return {"txnAppId": f"dbt_ivm-{epoch}", "txnVersion": str(seq), "userMetadata": metadata}


def _pairs(options: dict[str, str]) -> str:
    return ", ".join(f"{_literal(k)} = {_literal(v)}" for k, v in sorted(options.items()))


def _literal(text: str) -> str:
    return exp.Literal.string(text).sql(dialect="spark")
