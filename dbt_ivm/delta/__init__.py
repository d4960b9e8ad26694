"""Deltas by counting: always correct, knows no keys, no cost, no storage."""

from dbt_ivm.delta.context import DeltaContext, Window

__all__ = ["DeltaContext", "Window"]
