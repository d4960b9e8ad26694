"""Compiled model SQL (Spark dialect) to a logical plan: parse, bind to the catalog, qualify, lower."""

from dbt_ivm.frontend.lower import Lowered, lower

__all__ = ["Lowered", "lower"]
