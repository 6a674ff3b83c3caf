"""Holds back procedures that were learned from unproven runs only, because they are as easily planted as the runs.

A procedure or a lesson is proven if one of its runs is proven (``writer.rewards.proof``), or if a person pinned it. In
a mostly proven bank, if a proven case or a proven procedure fits the query, unproven ones are not shown. In other banks
none is held back.
"""

from itertools import chain

import numpy as np
from sqlalchemy import Select, any_, func, select

from policy.slate import Traits
from retrieval.database.parameters import USER_SUB
from retrieval.procedures.procedure import ProcedureMatches
from retrieval.tables.cases import cases
from retrieval.tables.procedures import procedures


def proven_runs() -> Select[int]:
    """Returns the subquery for the number of a procedure's proven runs."""
    runs = select(func.count().label("proven_runs")).where(
        cases.c.user_sub == USER_SUB, cases.c.id == any_(procedures.c.source_case_ids), cases.c.proven
    )
    return runs.correlate(procedures)


def fits_proven(traits: Traits, procedures: ProcedureMatches, least: float) -> bool:
    """Returns whether a proven run taught a procedure that was found, or is as similar to the query as one must be.

    A case of unknown similarity counts, too: cases and procedures are then found by words.
    """
    near = traits.proven & traits.allowed & ~(traits.similarity < np.float32(least))
    found = chain(procedures.matches, *procedures.of_parts)
    return bool(near.any()) or any(each.proven_runs for each in found)
