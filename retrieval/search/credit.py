"""The share of an outcome that each place of a decision earns, in SQL: twin of ``policy.examples.shared_credit``."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Float, case, cast, func, literal

from policy.examples import LEAST_AGREED

NOT_KNOWN: ColumnElement[float] = cast(literal(0.0), Float)
"""Stands for how far a run did what a place says, where nobody looks at that: all that share do so alike."""


def shared_credit(
    used: ColumnElement[bool], agreed: ColumnElement[float], decision: Sequence[ColumnElement[object]]
) -> ColumnElement[float]:
    """Returns each place's share of its decision's outcome, 0 to 1; see the twin for the rule and why.

    It is a window function: it must see every place of the decision, those whose case or version is gone included, so
    filter and join what has it, not what it is made of.

    Args:
        used: column of a place: true if the backend reported its use; NULL without a report.
        agreed: column of a place: agreement of the run's plan with the case's; NULL if unknown.
        decision: the columns that tell one decision from another.
    """
    weight = LEAST_AGREED + func.power(func.coalesce(cast(agreed, Float), 0.0), 2.0)
    said = func.bool_or(used.is_not(None)).over(partition_by=decision)
    whole = func.sum(weight).over(partition_by=decision)
    of_the_used = func.sum(weight).filter(used).over(partition_by=decision)
    return cast(case((~said, weight / whole), (used, weight / of_the_used), else_=0.0), Float)
