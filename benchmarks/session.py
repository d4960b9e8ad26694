"""The Spark session that benchmarks share: a user's settings, not those of the tests (code generation is on)."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

CORES = 2
DRIVER_MEMORY = "8g"
SETTINGS = {
    "spark.master": f"local[{CORES}]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": DRIVER_MEMORY,
    "spark.jars.packages": "io.delta:delta-spark_4.1_2.13:4.4.0",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.shuffle.partitions": "8",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",  # replaced files go at once: disk
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",  # VACUUM lists in so many tasks, not 10,000
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
    # a run of hours in one JVM: the status store must not grow
    "spark.ui.retainedJobs": "300",
    "spark.ui.retainedStages": "600",
    "spark.sql.ui.retainedExecutions": "20",
}


def spark_session(warehouse: Path) -> Any:
    from pyspark.sql import SparkSession

    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # errors arrive as exceptions
    builder = SparkSession.builder
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    return builder.config("spark.sql.warehouse.dir", str(warehouse)).getOrCreate()


def version_of_delta() -> str:
    return SETTINGS["spark.jars.packages"].rsplit(":", 1)[1]
