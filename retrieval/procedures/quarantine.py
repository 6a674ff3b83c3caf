"""Holds back what was learned from unproven runs alone, for it is as easily planted as the runs themselves.

A procedure or a lesson is proven if a run behind it is, see ``writer.rewards.proof``, or if a person pinned it. Where a
proven case or a proven procedure fits the query, unproven ones wait. In a bank without proof none does.
"""

import numpy as np
from sqlalchemy import Select, any_, func, select

from policy.slate import Field
from retrieval.database.parameters import USER_SUB
from retrieval.tables.cases import cases
from retrieval.tables.procedures import procedures


def proven_runs() -> Select[int]:
    """Returns the subquery for the number of a procedure's runs that are proven."""
    runs = select(func.count().label("proven_runs")).where(
        cases.c.user_sub == USER_SUB, cases.c.id == any_(procedures.c.source_case_ids), cases.c.proven
    )
    return runs.correlate(procedures)


def fits_proven(field: Field, least: float) -> bool:
    """Returns whether a proven candidate is as similar to the query as a procedure must be.

    One of unknown similarity counts as well: it was found by words, as the procedures then are.
    """
    if field.proven is None or field.similarity is None:
        return False
    return bool((field.proven & field.allowed & ~(field.similarity < np.float32(least))).any())
