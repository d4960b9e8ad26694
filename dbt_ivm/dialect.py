"""Spark 4's SQL where it differs from the parser's Spark dialect.

Reading: a doubled quote inside a string is that quote (``'it''s'``); before Spark 4 it was the end of one literal and
the beginning of the next, which is how the parser reads it.

Writing: the parser rewrites every SELECT for features of other dialects (QUALIFY, DISTINCT ON, UNNEST, ANY).  Plans
contain none of them, and each rewrite walks the whole statement once per nested SELECT.  Simple types are printed by
the parser once and remembered: it compares each with other dialects' types by parsing their names.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp, generator
from sqlglot.dialects.spark import Spark

_TYPE_NAMES: dict[object, str] = {}


#: The optional package sqlglotc brings a compiled generator, which cannot be extended and needs no help to be fast.
IS_COMPILED = not str(generator.__file__).endswith(".py")


class SparkFour(Spark):
    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES = [*Spark.Tokenizer.STRING_ESCAPES, "'", '"']  # noqa: RUF012 - the parser's own convention

    if not IS_COMPILED:

        class Generator(Spark.Generator):  # type: ignore[misc, valid-type]
            TRANSFORMS = {  # noqa: RUF012
                kind: rule for kind, rule in Spark.Generator.TRANSFORMS.items() if kind is not exp.Select
            }

            def datatype_sql(self, expression: exp.DataType) -> str:
                if any(value for name, value in expression.args.items() if name != "this"):
                    return str(super().datatype_sql(expression))
                name = _TYPE_NAMES.get(expression.this)
                if name is None:
                    name = _TYPE_NAMES[expression.this] = str(super().datatype_sql(expression))
                return name

            def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:
                to: Any = expression.to
                if safe_prefix or to.args.get("expressions") or to.args.get("nested") or expression.args.get("format"):
                    return str(super().cast_sql(expression, safe_prefix))
                return f"CAST({self.sql(expression, 'this')} AS {self.sql(expression, 'to')})"
