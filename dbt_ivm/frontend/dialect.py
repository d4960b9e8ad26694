"""Spark 4's SQL where it differs from the parser's Spark dialect.

A doubled quote inside a string is that quote (``'it''s'``); before Spark 4 it was the end of one literal and the
beginning of the next, which is how the parser reads it.
"""

from __future__ import annotations

from sqlglot.dialects.spark import Spark


class SparkFour(Spark):
    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES = [*Spark.Tokenizer.STRING_ESCAPES, "'", '"']  # noqa: RUF012 - the parser's own convention
