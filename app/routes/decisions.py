"""Routes over the log of decisions: served slates, reasons, runs and rewards."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import AfterValidator
from sqlalchemy import RowMapping

from app.edge.dependencies import Caller, Parts
from app.edge.intake.route import BodyRoute
from app.edge.problems import DOCUMENTED
from app.schemas.decisions import (
    CandidateOut,
    CaseNow,
    DecisionOut,
    DecisionsOut,
    RunOfDecision,
    ToldVersionOut,
    WholeDecisionOut,
    WouldServe,
)
from app.schemas.responses import next_cursor, response_of
from policy.decide import REPLAYED, Policy
from policy.weights import WeightsError
from retrieval.database.rows import AnyRow
from retrieval.errors import NotFound
from retrieval.ranking import logged
from retrieval.ranking.policies import name_of, number_of, policy_of
from retrieval.ranking.review import DecisionReview, Reviewed, review
from retrieval.tables.decisions import ADVICE
from retrieval.tables.kinds import Arm, has_failed
from writer.moment import Moment
from writer.privacy.words import Words, words_of_page
from writer.rights.edit import delete_decision
from writer.run import AgentKey
from writer.storable import storable
from writer.training.lifecycle import LIVE

router = APIRouter(prefix="/v1/decisions", tags=["decisions"], responses=DOCUMENTED, route_class=BodyRoute)

CHANGED = 1e-3
"""Least difference between a reward and its logged value that counts as a change; the log has half precision."""


@router.get("")
async def list_decisions(  # noqa: PLR0913, PLR0917 - each is a query parameter
    parts: Parts,
    caller: Caller,
    agent: Annotated[AgentKey | None, Query()] = None,
    policy_version: Annotated[Annotated[str, AfterValidator(storable)] | None, Query(max_length=40)] = None,
    arm: Annotated[Arm | None, Query()] = None,
    rewarded: Annotated[
        bool | None, Query(description="true: only decisions with a reward; false: only those without")
    ] = None,
    since: Annotated[Moment | None, Query(description="earliest time of a decision, inclusive")] = None,
    until: Annotated[Moment | None, Query(description="latest time of a decision, exclusive")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: Annotated[UUID | None, Query(description="next_cursor of the previous page")] = None,
) -> DecisionsOut:
    """Returns a page of the decisions that match every filter, the newest first."""
    page = logged.DecisionPage(cursor, limit, agent, policy_version, arm, rewarded, since, until)
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        rows = (await connection.execute(logged.page_of_decisions(caller.user_sub, page))).mappings().all()
        words = await words_of_page(parts.keyring, connection, caller.user_sub) if rows else None
    shown = [DecisionOut.model_validate(_shown(row, words)) for row in rows if words is not None]
    return DecisionsOut(decisions=shown, next_cursor=next_cursor(rows, limit))


@router.get("/{retrieval_id}")
async def get_decision(retrieval_id: UUID, parts: Parts, caller: Caller) -> WholeDecisionOut:
    """Returns one decision: each candidate with its features, its score, and the reason it was served or not.

    Scores are recomputed from the log; `off_by` is the largest difference to the logged ones. `missing` names data that
    was deleted or pruned since.
    """
    user_sub = caller.user_sub
    async with parts.database.as_user(user_sub, caller.authorised_at) as connection:
        row = (await connection.execute(logged.one_decision(user_sub, retrieval_id))).one_or_none()
        if row is None:
            raise NotFound("no such decision")
        wanted = logged.policies_for(user_sub, row.agent_key, number_of(row.policy_version))
        policies = (await connection.execute(wanted)).all()
        left = (await connection.execute(logged.cases_now(user_sub, row.candidate_ids))).mappings().all()
        runs = (await connection.execute(logged.runs_of(user_sub, retrieval_id))).mappings().all()
        rewards = (await connection.execute(logged.rewards_of(user_sub, retrieval_id))).mappings().all()
        words = await words_of_page(parts.keyring, connection, user_sub)
    if words is None:
        raise NotFound("no such decision")
    used = row.used_procedure_ids
    known: dict[str, Policy | None] = {REPLAYED: None}
    for each in policies:
        with suppress(WeightsError):  # a policy that cannot be loaded is left out
            policy = policy_of(each)
            known[policy.version] = policy
    found = review(row, known)
    now = {case["id"]: words.opened(case) for case in left}
    shown = _shown(row._mapping, words)  # noqa: SLF001 - the public name of the row as a mapping
    live = [REPLAYED, *(name_of(each.version) for each in policies if each.status in LIVE)]
    return WholeDecisionOut.model_validate(
        {
            **shown,
            "memory_context": None if row.told is None else words.open("told", row.told, retrieval_id),
            "procedures": [
                ToldVersionOut(procedure_id=each, version=version, used=None if used is None else each in used)
                for each, version in zip(row.procedure_ids, row.procedure_versions, strict=True)
            ],
            "candidates": [_candidate(each, row, now.get(each.case_id)) for each in found.candidates],
            "off_by": found.off_by,
            "would_serve": [
                WouldServe(policy_version=version, case_ids=ids)
                for version, ids in found.would_serve.items()
                if version in live
            ],
            "runs": [RunOfDecision.model_validate({**run, "case_id": run["id"]}) for run in runs],
            "rewards": list(map(dict, rewards)),
            "missing": _missing(row, found, now),
        }
    )


@router.delete("/{retrieval_id}", status_code=204)
async def remove_decision(retrieval_id: UUID, parts: Parts, caller: Caller) -> None:
    """Deletes a decision permanently, with its query, its slate and the rewards given to it; its runs stay."""
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        await delete_decision(connection, caller, retrieval_id)


def _shown(row: RowMapping | Mapping[str, Any], words: Words) -> dict[str, Any]:
    """Returns the columns of a decision under the names of the API, with its texts decrypted."""
    opened = words.open_query(row)
    slate = {"case_ids": opened["case_ids"] or []}
    return {**opened, **slate, "retrieval_id": opened["id"], "agent": opened["agent_key"]}


def _candidate(each: Reviewed, row: AnyRow, now: Mapping[str, Any] | None) -> CandidateOut:
    """Returns a candidate of a decision as the log has it, with the case as it is now unless it was deleted."""
    changed = False  # reward or outcome since the decision; features of another version cannot be compared
    if now is not None and each.seen:
        before, after = each.seen["reward"], now["reward"]
        same = before is after if None in {before, after} else abs(before - after) < CHANGED
        fails = has_failed(now["outcome"], after, now["reward_source"])
        changed = not same or fails != bool(each.seen["failed"])
    place = None if each.place is None else each.place - 1
    return response_of(
        CandidateOut,
        each,
        propensity=None if place is None else row.propensities[place],
        used=None if place is None else row.used[place],
        agreed=None if place is None else row.agreed[place],
        features=dict(each.seen),
        case=None if now is None else CaseNow.model_validate({**now, "changed": changed}),
    )


def _missing(row: AnyRow, found: DecisionReview, now: Mapping[UUID, Mapping[str, Any]]) -> list[str]:
    """Returns a sentence for each kind of data that was deleted since the decision."""
    gone = sum(case_id not in now for case_id in row.candidate_ids)
    pruned = sum(case["status"] == "pruned" for case in now.values())
    sentences = []
    if not all(each.seen for each in found.candidates):
        sentences.append(f"features are of version {row.feature_version}, which this version cannot read")
    elif found.off_by is None and row.mode != ADVICE:
        sentences.append(f"the policy {row.policy_version} was deleted, so scores are shown as logged")
    if gone:
        sentences.append(f"cases deleted since: {gone}")
    if pruned:
        sentences.append(f"cases pruned since: {pruned}")
    return sentences
