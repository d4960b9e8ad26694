"""Spark 4's SQL where it differs from the parser's Spark dialect.

Reading: a doubled quote inside a string is that quote (``'it''s'``); before Spark 4 it was the end of one literal and
the beginning of the next, which is how the parser reads it.  Functions that the parser would write as something else
(``AS_WRITTEN``) stay calls by name.

Writing: the parser rewrites every SELECT for features of other dialects (QUALIFY, DISTINCT ON, UNNEST, ANY).  Plans
contain none of them, and each rewrite walks the whole statement once per nested SELECT.  Simple types are printed by
the parser once and remembered: it compares each with other dialects' types by parsing their names.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp, generator
from sqlglot.dialects.spark import Spark
from sqlglot.tokenizer_core import Token, TokenType

#: Functions that the parser knows and writes with another meaning: without a format, a third argument or the case of a
#: path; with a column's name for a unit; with operands that what stands around them takes apart.
AS_WRITTEN = frozenset(
    "to_date to_timestamp date_format from_unixtime to_unix_timestamp to_char to_varchar to_number date_trunc trunc "
    "date_sub unix_date time_diff time_trunc from_utc_timestamp to_utc_timestamp array_size log log2 log10 percentile "
    "get_json_object instr space collate truncate".split()
)
#: Without an argument it is a clock, which the parser may know.
UNIX_TIMESTAMP = "unix_timestamp"
#: Before a function's name while the parser must not know it.
UNKNOWN = "as written: "
#: Functions that the parser writes as operators.
OPERATORS = frozenset("like ilike rlike regexp_like mod".split())

_TYPE_NAMES: dict[object, str] = {}


#: The optional package sqlglotc brings a compiled generator, which cannot be extended and needs no help to be fast.
IS_COMPILED = not str(generator.__file__).endswith(".py")


class SparkFour(Spark):
    ORIGINAL_NAME_META_KEY = "function"

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES = [*Spark.Tokenizer.STRING_ESCAPES, "'", '"']  # noqa: RUF012 - the parser's own convention

    # the optional compiled parser cannot be extended, so the names of functions are changed before it and after it
    def tokenize(self, sql: str, dialect: Any = None) -> list[Token]:
        tokens = super().tokenize(sql, dialect)
        for before, token, after, inside in zip([None, *tokens], tokens, tokens[1:], tokens[2:], strict=False):
            if after.token_type != TokenType.L_PAREN or (before and before.token_type == TokenType.DOT):
                continue
            name = token.text
            if name.lower() == UNIX_TIMESTAMP and inside.token_type != TokenType.R_PAREN:
                name = f"to_{UNIX_TIMESTAMP}"  # the same function
            if name.lower() in AS_WRITTEN and token.token_type != TokenType.IDENTIFIER:
                token.text, token.token_type = f"{UNKNOWN}{name}", TokenType.VAR
        return tokens

    def parse(self, sql: str, **options: Any) -> list[exp.Expr | None]:
        trees = super().parse(sql, **options)
        # of tables too: WITH log (a, b) AS …
        for named in [n for tree in trees if tree is not None for n in tree.find_all(exp.Anonymous, exp.Identifier)]:
            if isinstance(named.this, str):
                named.set("this", named.this.removeprefix(UNKNOWN))
        return trees

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
