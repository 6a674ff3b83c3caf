"""The share of an outcome that each place of a decision earns, in SQL: twin of ``policy.examples.shared_credit``."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Float, case, cast, func


def shared_credit(used: ColumnElement[bool], decision: Sequence[ColumnElement[object]]) -> ColumnElement[float]:
    """Returns each place's share of its decision's outcome, 0 to 1; see the twin for the rule and why.

    It is a window function: it must see every place of the decision, those whose case or version is gone included, so
    filter and join what has it, not what it is made of.

    Args:
        used: of a place, whether the backend said that it used it; NULL: it did not say.
        decision: the columns that tell one decision from another.
    """
    said = func.bool_or(used.is_not(None)).over(partition_by=decision)
    places = cast(func.count().over(partition_by=decision), Float)
    used_places = cast(func.count().filter(used).over(partition_by=decision), Float)
    return cast(case((~said, 1.0 / places), (used, 1.0 / used_places), else_=0.0), Float)
