"""Spark in this process, with the very settings dbt uses: those in profiles.yml."""

from __future__ import annotations

from typing import Any

import yaml

from examples.shop.demo.place import LOG, PROJECT
from scripts.preflight import start_failure


class SparkDidNotStart(Exception):
    """The message says what to do."""


def settings() -> dict[str, str]:
    profile = yaml.safe_load((PROJECT / "profiles.yml").read_text())["shop"]
    parameters: dict[str, str] = profile["outputs"][profile["target"]]["server_side_parameters"]
    return parameters


def start_spark() -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("dbt-ivm demo").enableHiveSupport()
    for name, value in settings().items():
        builder = builder.config(name, value)
    try:
        spark = builder.getOrCreate()
        spark.sql("show databases").collect()  # the metastore starts with the first statement
    except Exception as error:
        remedy = start_failure(LOG.read_text(errors="replace") + str(error))
        raise SparkDidNotStart(remedy or f"Spark did not start: {str(error).splitlines()[0]}") from error
    return spark


def table_version(spark: Any, table: str) -> int:
    """The version of a Delta table's last commit."""
    version: int = spark.sql(f"describe history {table} limit 1").collect()[0]["version"]
    return version
