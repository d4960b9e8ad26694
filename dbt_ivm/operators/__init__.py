"""The algebra.  One operator, one file; VIEW_OPERATORS may stand in a view, the others only in delta plans."""

from dbt_ivm.operators.aggregate import Aggregate, Measure
from dbt_ivm.operators.base import Column, Linearity, Operator, UnaryOperator, col, references, text
from dbt_ivm.operators.clock import Clock
from dbt_ivm.operators.existence import Existence, Kind
from dbt_ivm.operators.filter import Filter
from dbt_ivm.operators.full_join import FullJoin
from dbt_ivm.operators.generate import Generate
from dbt_ivm.operators.join import Join
from dbt_ivm.operators.left_join import LeftJoin
from dbt_ivm.operators.left_lookup import LeftLookup
from dbt_ivm.operators.lookup import Lookup, Reach
from dbt_ivm.operators.lookup_tree import LookupTree
from dbt_ivm.operators.moving_filter import MovingFilter
from dbt_ivm.operators.one_row import OneRow
from dbt_ivm.operators.preserving import PreservingJoin
from dbt_ivm.operators.preserving_star import PreservingStar
from dbt_ivm.operators.project import Project, Projection
from dbt_ivm.operators.repeat import Repeat
from dbt_ivm.operators.scan import Field, Scan
from dbt_ivm.operators.scan_changes import ScanChanges
from dbt_ivm.operators.scan_kept import ScanKept
from dbt_ivm.operators.scan_values import ScanValues
from dbt_ivm.operators.semi_join import SemiJoin
from dbt_ivm.operators.supplemented_joins import SupplementedJoins
from dbt_ivm.operators.union_all import UnionAll
from dbt_ivm.operators.window import WindowFunction, Windowing

VIEW_OPERATORS: tuple[type[Operator], ...] = (
    Scan,
    OneRow,
    Clock,
    Filter,
    MovingFilter,
    Project,
    Join,
    LeftJoin,
    FullJoin,
    Existence,
    UnionAll,
    Aggregate,
    Windowing,
    Generate,
)
DELTA_OPERATORS: tuple[type[Operator], ...] = (
    ScanChanges,
    ScanKept,
    ScanValues,
    SemiJoin,
    LeftLookup,
    LookupTree,
    PreservingStar,
    Repeat,
    SupplementedJoins,
)

__all__ = [
    "DELTA_OPERATORS",
    "VIEW_OPERATORS",
    "Aggregate",
    "Clock",
    "Column",
    "Existence",
    "Field",
    "Filter",
    "FullJoin",
    "Generate",
    "Join",
    "Kind",
    "LeftJoin",
    "LeftLookup",
    "Linearity",
    "Lookup",
    "LookupTree",
    "Measure",
    "MovingFilter",
    "OneRow",
    "Operator",
    "PreservingJoin",
    "PreservingStar",
    "Project",
    "Projection",
    "Reach",
    "Repeat",
    "Scan",
    "ScanChanges",
    "ScanKept",
    "ScanValues",
    "SemiJoin",
    "SupplementedJoins",
    "UnaryOperator",
    "UnionAll",
    "WindowFunction",
    "Windowing",
    "col",
    "references",
    "text",
]  # fmt: skip
