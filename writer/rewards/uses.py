"""Selects the uses of cases in past retrievals, each with its share of the reward, for reuse records and proofs."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Select, Subquery, select

from retrieval.search.credit import NOT_KNOWN, shared_credit
from retrieval.tables.decisions import ADVICE, decision_slots, decisions


def showed(user_sub: str, case_ids: Sequence[UUID]) -> Select[UUID]:
    """Returns a statement that selects the decisions whose slates showed one of these cases."""
    slot = decision_slots.c
    return select(slot.decision_id).where(slot.user_sub == user_sub, slot.case_id.in_(case_ids))


def uses(user_sub: str, decision_ids: Select[UUID] | Sequence[UUID]) -> Subquery:
    """Returns a subquery with one row for each case on the slate of each of these decisions.

    Columns: ``case_id``; ``used`` (NULL: the backend did not say); ``share``, the case's share of the reward by
    ``policy.examples.shared_credit``; ``even``, the share if agreement with plans did not count; and the retrieval's
    ``reward`` and ``reward_source``, NULL without a reward. All cases of a slate have rows, because the shares
    depend on each other. Decisions of advice have none.
    """
    slot = decision_slots.c
    return (
        select(
            slot.case_id,
            slot.used,
            shared_credit(slot.used, slot.agreed, [slot.decision_id]).label("share"),
            shared_credit(slot.used, NOT_KNOWN, [slot.decision_id]).label("even"),
            decisions.c.reward,
            decisions.c.reward_source,
        )
        .join(decisions, (decisions.c.user_sub == slot.user_sub) & (decisions.c.id == slot.decision_id))
        .where(slot.user_sub == user_sub, slot.decision_id.in_(decision_ids), decisions.c.mode != ADVICE)
        .subquery()
    )
