"""Pages of decisions: the list, and one decision with the reasons for its cases."""

from typing import Annotated, Literal
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response

from app.console.page import ROOT, Looking, Page, show
from app.console.why import answers
from app.routes.decisions import get_decision, list_decisions
from retrieval.tables.kinds import Arm

router = APIRouter(prefix=f"{ROOT}/decisions", route_class=Page, include_in_schema=False)

PER_PAGE = 25


@router.get("")
async def decisions_page(
    request: Request,
    looking: Looking,
    arm: Arm | Literal[""] = "",
    rewarded: Literal["yes", "no", ""] = "",
    cursor: Annotated[UUID | None, Query()] = None,
) -> Response:
    """Returns a page of the newest decisions of an agent."""
    is_rewarded = {"": None, "yes": True, "no": False}[rewarded]
    page = await list_decisions(
        looking.parts,
        looking.author,
        agent=looking.agent,
        arm=arm or None,
        rewarded=is_rewarded,
        limit=PER_PAGE,
        cursor=cursor,
    )
    return show(request, "decisions.html", looking, page=page, arm=arm, rewarded=rewarded)


@router.get("/{retrieval_id}")
async def decision_page(request: Request, looking: Looking, retrieval_id: UUID) -> Response:
    """Returns the page of one decision: its slate and the other candidates, each with its reason."""
    decision = await get_decision(retrieval_id, looking.parts, looking.author)
    slate = sorted((each for each in decision.candidates if each.place), key=lambda each: each.place or 0)
    others = sorted((each for each in decision.candidates if not each.place), key=lambda each: -each.score)
    names = {each.case_id: each.case and each.case.task for each in decision.candidates}
    # without rewards of the decision that repeat a reward of one of its runs
    of_runs: set[tuple[float, str | None]] = {(each.reward, each.source) for each in decision.rewards if each.case_id}
    of_runs |= {(run.reward, run.reward_source) for run in decision.runs if run.reward is not None}
    rewards = [each for each in decision.rewards if each.case_id or (each.reward, each.source) not in of_runs]
    why = await answers(looking, decision)
    return show(
        request,
        "decision.html",
        looking,
        decision=decision,
        slate=slate,
        others=others,
        names=names,
        why=why,
        rewards=rewards,
    )
