"""Operators and steps to Spark SQL: built as a tree, printed once."""

from dbt_ivm.render.query import render_query, sql_text

__all__ = ["render_query", "sql_text"]
