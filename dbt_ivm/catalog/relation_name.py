"""Relation names compared as parsed parts, case-folded, with two or three parts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from sqlglot import exp


@dataclass(frozen=True, order=True)
class RelationName:
    """A relation as ``[catalog.]schema.name``; equality ignores case.

    >>> RelationName.parse("Shop.`Orders`") == RelationName.parse("shop.orders")
    True
    >>> str(RelationName.parse("spark_catalog.shop.orders"))
    'spark_catalog.shop.orders'
    """

    parts: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(p.lower() for p in self.parts))

    @staticmethod
    def of(table: exp.Table) -> RelationName:
        return RelationName(tuple(p.name for p in table.parts))

    @staticmethod
    def parse(text: str) -> RelationName:
        return RelationName.of(exp.to_table(text, dialect="spark"))

    @property
    def name(self) -> str:
        return self.parts[-1]

    def within(self, namespace: tuple[str, ...]) -> RelationName:
        """Complete a one-part name by the namespace it was written in.

        >>> str(RelationName(("t",)).within(("spark_catalog", "shop")))
        'spark_catalog.shop.t'
        """
        return self if len(self.parts) > 1 else RelationName((*namespace, *self.parts))

    def sibling(self, name: str) -> RelationName:
        return RelationName((*self.parts[:-1], name))

    def matches(self, other: RelationName) -> bool:
        """Equal, or equal in schema and name when one of them leaves the catalog out."""
        shared = min(len(self.parts), len(other.parts))
        return shared >= 1 and self.parts[-shared:] == other.parts[-shared:]

    def table(self) -> exp.Table:
        """The relation as SQL, quoted where needed."""
        identifiers = [exp.to_identifier(p, quoted=_needs_quotes(p)) for p in self.parts]
        names = dict(zip(("this", "db", "catalog"), reversed(identifiers), strict=False))
        return exp.Table(**names)

    def __str__(self) -> str:
        return _printed(self.parts)


@cache
def _printed(parts: tuple[str, ...]) -> str:
    return RelationName(parts).table().sql(dialect="spark")


def _needs_quotes(part: str) -> bool:
    return not part.replace("_", "a").isalnum() or part[0].isdigit() or part in RESERVED_WORDS


#: Words Spark refuses, or sqlglot prints differently, as bare identifiers.
RESERVED_WORDS = frozenset(
    "all and anti any as both case cast check collate column constraint create cross distinct else end except "
    "false fetch for foreign from full grant group having in inner intersect into is join lateral leading left "
    "minus natural not null on only or order outer overlaps primary references right select semi session_user set "
    "some table then to trailing true union unique user using values when where window with date timestamp "
    "interval".split()
)
