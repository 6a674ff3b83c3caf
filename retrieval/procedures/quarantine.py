"""Holds back procedures that were learned from unproven runs only, because they are as easily planted as the runs.

A procedure or a lesson is proven if one of its runs is proven (``writer.rewards.proof``), or if a person pinned it. If
a proven case or a proven procedure fits the query, unproven procedures are not shown. In a bank without proven runs
none is held back.
"""

import numpy as np
from sqlalchemy import Select, any_, func, select

from policy.slate import Traits
from retrieval.database.parameters import USER_SUB
from retrieval.tables.cases import cases
from retrieval.tables.procedures import procedures


def proven_runs() -> Select[int]:
    """Returns the subquery for the number of a procedure's proven runs."""
    runs = select(func.count().label("proven_runs")).where(
        cases.c.user_sub == USER_SUB, cases.c.id == any_(procedures.c.source_case_ids), cases.c.proven
    )
    return runs.correlate(procedures)


def fits_proven(traits: Traits, least: float) -> bool:
    """Returns whether some proven case is as similar to the query as a procedure must be to be shown.

    A case of unknown similarity counts, too: cases and procedures are then found by words.
    """
    return bool((traits.proven & traits.allowed & ~(traits.similarity < np.float32(least))).any())
