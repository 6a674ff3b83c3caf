"""The uses of cases on the slates of decisions, each with its share of the outcome: what records and proofs add up."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Subquery, select

from retrieval.search.credit import NOT_KNOWN, shared_credit
from retrieval.tables.decisions import decision_slots, decisions


def uses(user_sub: str, case_ids: Sequence[UUID]) -> Subquery:
    """Returns the places of every decision that showed one of the cases, those of other cases included.

    Columns: ``case_id``, ``used`` (NULL: the backend did not say), ``share`` as ``policy.examples.shared_credit`` has
    it, ``even`` the same if all that share did so alike, whatever the run did, and of the decision ``reward`` and
    ``reward_source``, NULL where it was not rewarded.
    """
    slot = decision_slots.c
    showed = select(slot.decision_id).where(slot.user_sub == user_sub, slot.case_id.in_(case_ids))
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
        .where(slot.user_sub == user_sub, slot.decision_id.in_(showed))
        .subquery()
    )
