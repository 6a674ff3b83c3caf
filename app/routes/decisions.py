"""Decisions, asked about later: which slates were served, why, and what came of them."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from sqlalchemy import RowMapping

from app.edge.dependencies import Caller, Parts
from app.edge.intake.route import BodyRoute
from app.edge.problems import DOCUMENTED
from app.schemas.decisions import (
    CandidateOut,
    CaseNow,
    DecisionOut,
    DecisionsOut,
    RewardOut,
    RunOfDecision,
    TermsOut,
    ToldVersionOut,
    WholeDecisionOut,
    WouldServe,
)
from policy import default
from policy.decide import Policy
from policy.weights import WeightsError
from retrieval.database.rows import AnyRow
from retrieval.errors import NotFound
from retrieval.ranking import logged
from retrieval.ranking.policies import OF_FLEET, name_of, number_of, policy_of
from retrieval.ranking.review import Review, Reviewed, review
from retrieval.tables.columns import SHARED
from retrieval.tables.kinds import FAILED, Arm
from writer.moment import Moment
from writer.privacy.words import Words
from writer.run import AgentKey
from writer.training.lifecycle import LIVE

router = APIRouter(prefix="/v1/decisions", tags=["decisions"], responses=DOCUMENTED, route_class=BodyRoute)

CHANGED = 1e-3
"""By how much a reward must differ from the logged one, which has half a float's precision, to be another."""


@router.get("")
async def list_decisions(  # noqa: PLR0913, PLR0917 - each is a query parameter
    parts: Parts,
    caller: Caller,
    agent: Annotated[AgentKey | None, Query()] = None,
    policy_version: Annotated[str | None, Query(max_length=40)] = None,
    arm: Annotated[Arm | None, Query()] = None,
    rewarded: Annotated[bool | None, Query(description="only those with a reward, or only those without")] = None,
    since: Annotated[Moment | None, Query(description="taken then or later")] = None,
    until: Annotated[Moment | None, Query(description="taken before then")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    cursor: Annotated[UUID | None, Query(description="next_cursor of the page before")] = None,
) -> DecisionsOut:
    """Returns the newest decisions that fit every filter, a page at a time."""
    page = logged.DecisionPage(cursor, limit, agent, policy_version, arm, rewarded, since, until)
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        rows = (await connection.execute(logged.page_of_decisions(caller.user_sub, page))).mappings().all()
        key = await parts.keyring.find(connection, caller.user_sub) if rows else None
    shown = [DecisionOut.model_validate(_shown(row, Words(caller.user_sub, key))) for row in rows if key is not None]
    return DecisionsOut(decisions=shown, next_cursor=str(rows[-1]["id"]) if len(rows) == limit else None)


@router.get("/{retrieval_id}")
async def get_decision(retrieval_id: UUID, parts: Parts, caller: Caller) -> WholeDecisionOut:
    """Returns one decision: every candidate with what was known of it, and why it was served or was not.

    The scores are computed again from the log; `off_by` says how exactly that gives what was served. What was deleted
    or pruned since is named in `missing`.
    """
    user_sub = caller.user_sub
    async with parts.database.as_user(user_sub, caller.authorised_at) as connection:
        row = (await connection.execute(logged.one_decision(user_sub, retrieval_id))).one_or_none()
        if row is None:
            raise NotFound("no such decision")
        owner = SHARED if row.policy_version.startswith(OF_FLEET) else user_sub
        wanted = logged.policies_for(user_sub, row.agent_key, owner, number_of(row.policy_version))
        policies = (await connection.execute(wanted)).all()
        left = (await connection.execute(logged.cases_now(user_sub, row.candidate_ids))).mappings().all()
        runs = (await connection.execute(logged.runs_of(user_sub, retrieval_id))).mappings().all()
        rewards = (await connection.execute(logged.rewards_of(user_sub, retrieval_id))).mappings().all()
        key = await parts.keyring.find(connection, user_sub)
    if key is None:
        raise NotFound("no such decision")
    words = Words(user_sub, key)
    known = _known(policies)
    found = review(row, known)
    now = {case["id"]: words.opened(case) for case in left}
    shown = _shown(row._mapping, words)  # noqa: SLF001 - the public name of the row as a mapping
    live = [
        default.VERSION,
        *(name_of(each.user_sub, each.version) for each in policies if each.status in LIVE),
    ]
    return WholeDecisionOut.model_validate(
        {
            **shown,
            "memory_context": None if row.told is None else words.open_told(retrieval_id, row.told),
            "procedures": _procedures(row),
            "candidates": [_candidate(each, row, now.get(each.case_id)) for each in found.candidates],
            "off_by": found.off_by,
            "would_serve": [
                WouldServe(policy_version=version, case_ids=ids)
                for version, ids in found.would_serve.items()
                if version in live
            ],
            "runs": [RunOfDecision.model_validate({**run, "case_id": run["id"]}) for run in runs],
            "rewards": [RewardOut.model_validate(dict(reward)) for reward in rewards],
            "missing": _missing(row, found, now),
        }
    )


def _shown(row: RowMapping | Mapping[str, Any], words: Words) -> dict[str, Any]:
    """Returns the columns of a decision under the names of the API, with its words opened."""
    opened = words.open_query(row)
    slate = {"case_ids": opened["case_ids"] or []}
    return {**opened, **slate, "retrieval_id": opened["id"], "agent": opened["agent_key"]}


def _known(rows: Sequence[AnyRow]) -> dict[str, Policy | None]:
    """Returns the policies by version, the default among them; one that cannot be loaded is left out."""
    known: dict[str, Policy | None] = {default.VERSION: None}
    for row in rows:
        try:
            policy = policy_of(row)
        except WeightsError:
            continue
        known[policy.version] = policy
    return known


def _procedures(row: AnyRow) -> list[ToldVersionOut]:
    used = row.used_procedure_ids
    return [
        ToldVersionOut(procedure_id=each, version=version, used=None if used is None else each in used)
        for each, version in zip(row.procedure_ids, row.procedure_versions, strict=True)
    ]


def _candidate(each: Reviewed, row: AnyRow, now: Mapping[str, Any] | None) -> CandidateOut:
    place = None if each.place is None else each.place - 1
    return CandidateOut(
        case_id=each.case_id,
        place=each.place,
        propensity=None if place is None else row.propensities[place],
        used=None if place is None else row.used[place],
        agreed=None if place is None else row.agreed[place],
        reason=each.reason,
        score=each.score,
        terms=None if each.terms is None else TermsOut.model_validate(each.terms),
        group=each.group,
        source=each.source,
        features=dict(each.seen),
        case=None if now is None else CaseNow.model_validate({**now, "changed": _changed(each, now)}),
    )


def _changed(then: Reviewed, now: Mapping[str, Any]) -> bool:
    """Returns whether more is known by now of how the case went; False where nobody knows what was known."""
    if not then.seen:
        return False
    before, after = then.seen["reward"], now["reward"]
    same = before is after if None in {before, after} else abs(before - after) < CHANGED
    return not same or (now["outcome"] in FAILED) != bool(then.seen["failed"])


def _missing(row: AnyRow, found: Review, now: Mapping[UUID, Mapping[str, Any]]) -> list[str]:
    """Returns what is no longer there, a sentence each."""
    gone = sum(case_id not in now for case_id in row.candidate_ids)
    pruned = sum(case["status"] == "pruned" for case in now.values())
    said = []
    if not all(each.seen for each in found.candidates):
        said.append(f"features are of version {row.feature_version}, which nobody reads any more")
    elif found.off_by is None:
        said.append(f"the policy {row.policy_version} is no longer there, so its scores stand as they were logged")
    if gone:
        said.append(f"cases deleted since: {gone}")
    if pruned:
        said.append(f"cases pruned since: {pruned}")
    return said
