"""Divides a decision's outcome among the places of its slate, in SQL, as ``policy.examples.shared_credit`` does."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Float, case, cast, func, literal

from policy.examples import LEAST_AGREED

NOT_KNOWN: ColumnElement[float] = cast(literal(0.0), Float)
"""Value of ``agreed`` if agreement with plans is not counted: all places that share an outcome get equal shares."""


def shared_credit(
    used: ColumnElement[bool], agreed: ColumnElement[float], decision: Sequence[ColumnElement[object]]
) -> ColumnElement[float]:
    """Returns each place's share of its decision's outcome, 0 to 1, by the rule of ``policy.examples.shared_credit``.

    The expression is a window function: it must see every place of the decision, even if the place's case was deleted.
    So filter or join the rows after the expression was computed, not before.

    Args:
        used: column of a place: true if the backend reported its use; NULL without a report.
        agreed: column of a place: agreement of the run's plan with the case's; NULL if unknown.
        decision: the columns that identify a decision.
    """
    weight = LEAST_AGREED + func.power(func.coalesce(cast(agreed, Float), 0.0), 2.0)
    said = func.bool_or(used.is_not(None)).over(partition_by=decision)
    whole = func.sum(weight).over(partition_by=decision)
    of_the_used = func.sum(weight).filter(used).over(partition_by=decision)
    return cast(case((~said, weight / whole), (used, weight / of_the_used), else_=0.0), Float)
