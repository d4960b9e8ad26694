"""Spark 4's SQL where it differs from the parser's Spark dialect.

Reading: a doubled quote inside a string is that quote (``'it''s'``); before Spark 4 it was the end of one literal and
the beginning of the next, which is how the parser reads it.

Writing: the parser rewrites every SELECT for features of other dialects (QUALIFY, DISTINCT ON, UNNEST, ANY).  Plans
contain none of them, and each rewrite walks the whole statement once per nested SELECT.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.dialects.spark import Spark


class SparkFour(Spark):
    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES = [*Spark.Tokenizer.STRING_ESCAPES, "'", '"']  # noqa: RUF012 - the parser's own convention

    class Generator(Spark.Generator):  # type: ignore[misc, valid-type]
        TRANSFORMS = {  # noqa: RUF012
            kind: rule for kind, rule in Spark.Generator.TRANSFORMS.items() if kind is not exp.Select
        }
