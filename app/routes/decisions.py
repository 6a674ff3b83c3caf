"""Routes over the log of decisions: served slates, reasons, runs and rewards."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from sqlalchemy import RowMapping

from app.edge.dependencies import AnyAgent, Caller, Cursor, Limit, Parts, Since, Until
from app.edge.routers import api_router
from app.schemas.fields import Real
from app.schemas.responses import RowOut, next_cursor, response_of
from policy.decide import REPLAYED, Policy
from policy.reasons import Reason
from policy.weights import WeightsError
from retrieval.database.rows import AnyRow
from retrieval.errors import NotFound
from retrieval.pages.listing import Span
from retrieval.ranking import logged
from retrieval.ranking.policies import name_of, number_of, policy_of
from retrieval.ranking.review import DecisionReview, Reviewed, review
from retrieval.tables.decisions import ADVICE
from retrieval.tables.kinds import Arm, CaseStatus, RewardSource, RunOutcome, has_failed
from writer.privacy.words import Words
from writer.rights.edit import delete_decision
from writer.storable import storable
from writer.training.lifecycle import LIVE


class DecisionOut(RowOut):
    """One decision: a query, and the slate that was served for it."""

    retrieval_id: UUID = Field(validation_alias="id")
    agent: str = Field(validation_alias="agent_key")
    query: str
    rewritten: str | None = Field(description="rewritten query that was searched for; null: the query itself")
    mode: str
    degraded: list[str]
    policy_version: str
    arm: Arm = Field(description="policy that ordered the cases: default, serving, or candidate (on trial)")
    k: int
    case_ids: list[UUID] = Field(description="cases of the slate, in the order of their places")
    slate_propensity: Real = Field(description="probability of this exact slate, over all arms and random draws")
    tokens: int = Field(description="length of `memory_context` in tokens")
    reward: Real | None
    reward_source: RewardSource | None
    created_at: datetime


class DecisionsOut(BaseModel):
    """One page of decisions, the newest first."""

    decisions: list[DecisionOut]
    next_cursor: str | None


class TermsOut(BaseModel):
    """Terms of a score, in log odds up to a constant per query.

    The score is `order` + `learned`.
    """

    model_config = ConfigDict(from_attributes=True)

    order: float = Field(description="minus half the logarithm of its place by the order that replay chose")
    learned: float = Field(description="term added by the learned policy; 0 for the default")
    spread: float = Field(description="standard deviation between the members of the policy")
    expected: float | None = Field(description="reward expected of a slate with this case alone; null for the default")


class CaseNow(BaseModel):
    """The case of a candidate, as it is stored now."""

    task: str
    plan: list[str]
    status: CaseStatus
    outcome: RunOutcome
    reward: Real | None
    changed: bool = Field(description="true: its reward or outcome has changed since the decision")


class CandidateOut(BaseModel):
    """A case that the search returned, served or not."""

    case_id: UUID
    place: int | None = Field(description="1-based place on the slate; null: not served")
    propensity: Real | None = Field(description="probability of this case at this place")
    used: bool | None = Field(description="true or false: used or not, as the backend reported; null: not reported")
    agreed: Real | None = Field(
        description="agreement of the later run's plan with the plan of this case, 0 to 1; null: no run reported yet"
    )
    reason: Reason | None = Field(
        description="reason why the case was served or not; null: it can no longer be computed"
    )
    score: Real
    terms: TermsOut | None = Field(
        description="terms of the score; null: the policy or its feature version no longer exists"
    )
    group: int = Field(description="number shared by candidates with the same content")
    source: int = Field(description="number shared by candidates from the same source")
    features: dict[str, float | None] = Field(description="inputs of the policy, by name")
    case: CaseNow | None = Field(description="the case as it is now; null: deleted since")


class ToldVersionOut(BaseModel):
    """A version of a procedure that was served with the slate."""

    procedure_id: UUID
    version: int
    used: bool | None


class RunOfDecision(RowOut):
    """A run that received the slate of the decision."""

    case_id: UUID = Field(validation_alias="id")
    status: CaseStatus
    outcome: RunOutcome
    reward: Real | None
    reward_source: RewardSource | None
    created_at: datetime


class RewardOut(BaseModel):
    """A reward for the decision or for one of its runs."""

    case_id: UUID | None = Field(description="run that was rewarded; null: the decision itself")
    reward: Real
    source: RewardSource
    actor: str
    created_at: datetime


class WouldServe(BaseModel):
    """The slate that a live policy would serve now, without exploration."""

    policy_version: str
    case_ids: list[UUID]


class WholeDecisionOut(DecisionOut):
    """One decision with its inputs, candidates, runs and rewards."""

    memory_context: str | None = Field(
        description="context text that was served; null: not kept, older than 30 days, or partly deleted since"
    )
    procedures: list[ToldVersionOut]
    seed: int
    min_similarity: Real | None
    candidates: list[CandidateOut] = Field(description="all candidates, in the order of the search")
    off_by: float | None = Field(
        description="largest difference between a logged score and its recomputation; null: scores cannot be recomputed"
    )
    would_serve: list[WouldServe]
    runs: list[RunOfDecision]
    rewards: list[RewardOut]
    missing: list[str] = Field(description="data deleted since the decision, one sentence each")


router = api_router("decisions", "/v1/decisions")

CHANGED = 1e-3
"""Least difference between a reward and its logged value that counts as a change; the log has half precision."""


@router.get("")
async def list_decisions(  # noqa: PLR0913, PLR0917 - each is a query parameter
    parts: Parts,
    caller: Caller,
    agent: AnyAgent = None,
    policy_version: Annotated[Annotated[str, AfterValidator(storable)] | None, Query(max_length=40)] = None,
    arm: Annotated[Arm | None, Query()] = None,
    rewarded: Annotated[
        bool | None, Query(description="true: only decisions with a reward; false: only those without")
    ] = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> DecisionsOut:
    """Returns a page of the decisions that match every filter, the newest first."""
    only, span = {"agent_key": agent, "policy_version": policy_version, "arm": arm}, Span(limit, since, until)
    page = logged.page_of_decisions(caller.user_sub, only, span, rewarded=rewarded, before=cursor)
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        rows = (await connection.execute(page)).mappings().all()
        words = await parts.keyring.find_for_page(connection, caller.user_sub) if rows else None
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
        words = await parts.keyring.find_for_page(connection, user_sub)
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
            "candidates": [_candidate(row, place, each, now) for place, each in enumerate(found.candidates)],
            "off_by": found.off_by,
            "would_serve": [
                WouldServe(policy_version=version, case_ids=ids)
                for version, ids in found.would_serve.items()
                if version in live
            ],
            "runs": list(map(RunOfDecision.model_validate, runs)),
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
    opened = words.open_query(row)
    return {**opened, "case_ids": opened["case_ids"] or []}


def _candidate(row: AnyRow, index: int, each: Reviewed, cases: Mapping[UUID, Mapping[str, Any]]) -> CandidateOut:
    """Returns a candidate of a decision as the log has it, with the case as it is now unless it was deleted."""
    case_id, slate = row.candidate_ids[index], row.case_ids or []
    now = cases.get(case_id)
    changed = False  # reward or outcome since the decision; features of another version cannot be compared
    if now is not None and each.features:
        before, after = each.features["reward"], now["reward"]
        same = before is after if None in {before, after} else abs(before - after) < CHANGED
        fails = has_failed(now["outcome"], after, now["reward_source"])
        changed = not same or fails != bool(each.features["failed"])
    place = slate.index(case_id) if case_id in slate else None
    return response_of(
        CandidateOut,
        each,
        case_id=case_id,
        place=None if place is None else place + 1,
        score=row.scores[index],
        group=row.candidate_groups[index],
        source=row.candidate_sources[index],
        propensity=None if place is None else row.propensities[place],
        used=None if place is None else row.used[place],
        agreed=None if place is None else row.agreed[place],
        case=None if now is None else CaseNow.model_validate({**now, "changed": changed}),
    )


def _missing(row: AnyRow, found: DecisionReview, now: Mapping[UUID, Mapping[str, Any]]) -> list[str]:
    """Returns a sentence for each kind of data that was deleted since the decision."""
    gone = sum(case_id not in now for case_id in row.candidate_ids)
    pruned = sum(case["status"] == "pruned" for case in now.values())
    sentences = []
    if not all(each.features for each in found.candidates):
        sentences.append(f"features are of version {row.feature_version}, which this version cannot read")
    elif found.off_by is None and row.mode != ADVICE:
        sentences.append(f"the policy {row.policy_version} was deleted, so scores are shown as logged")
    if gone:
        sentences.append(f"cases deleted since: {gone}")
    if pruned:
        sentences.append(f"cases pruned since: {pruned}")
    return sentences
