"""One embedded Spark session with Delta per test process, with an in-memory catalog."""

from __future__ import annotations

import functools
import logging
import tempfile
from typing import Any

import pytest

from scripts.preflight import start_failure

SETTINGS = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.driver.memory": "4g",
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m",  # two processes share two cores
    "spark.jars.packages": "io.delta:delta-spark_4.1_2.13:4.4.0",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.catalogImplementation": "in-memory",
    # tiny data: one partition, no adaptive re-planning and no code generation save most of a statement's time
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.ansi.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
}


@functools.cache
def spark_session() -> Any:
    from pyspark.sql import SparkSession

    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # errors reach the tests as exceptions
    builder = SparkSession.builder
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    builder = builder.config("spark.sql.warehouse.dir", tempfile.mkdtemp(prefix="ivm_warehouse_"))
    try:
        return builder.getOrCreate()
    except Exception as error:
        remedy = start_failure("unresolved dependency")
        pytest.exit(
            f"Spark did not start: {str(error).splitlines()[0]}\nIf its log above says so: {remedy}", returncode=1
        )
