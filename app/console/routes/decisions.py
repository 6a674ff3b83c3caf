"""Pages of decisions: the list, and one decision with the reasons for its cases."""

from typing import Annotated, Literal
from uuid import UUID

import numpy as np
from fastapi import APIRouter, Query, Request, Response

from app.console.page import PER_PAGE, ROOT, Looking, Page, Visitor, show
from app.console.words import REASONS
from app.routes.decisions import CandidateOut, WholeDecisionOut, get_decision, list_decisions
from policy.channels import idf, words
from retrieval.ranking.why import TellingWords
from retrieval.sealed import TERMS
from retrieval.tables.kinds import Arm
from writer.replays.profile_replay import stored_replay


async def answers(looking: Visitor, decision: WholeDecisionOut) -> dict[UUID, str]:
    """Returns a sentence for each candidate: why it was chosen, or why not."""
    spoken = words(decision.rewritten or decision.query)
    tasks = {each.case_id: set(words(each.case.task)) for each in decision.candidates if each.case is not None}
    author = looking.author
    async with looking.parts.database.as_user(author.user_sub, author.authorised_at) as connection:
        replay = await stored_replay(connection, author.user_sub, decision.agent)
        seal = await looking.parts.keyring.find(connection, author.user_sub)
    if replay is not None and seal is not None and spoken:
        numbers = np.array(seal.numbers(TERMS, spoken), dtype=np.int32)
        weights = np.asarray(replay.fit.telling(numbers)[0])
    else:  # before the first replay: how rare each word is in the tasks
        having = np.array([sum(word in task for task in tasks.values()) for word in spoken], dtype=np.float32)
        weights = idf(float(len(tasks)), having)
    query = TellingWords(spoken, weights)
    shared = {case_id: query.heaviest([word in task for word in spoken]) for case_id, task in tasks.items()}
    return {each.case_id: sentence(each, shared.get(each.case_id, [])) for each in decision.candidates}


def sentence(candidate: CandidateOut, shared: list[str]) -> str:
    """Returns why a candidate was chosen, or why not; ``shared`` are its words in the query, the most telling first."""
    if candidate.reason is None:
        return "The reason can no longer be computed."
    if candidate.reason not in {"chosen", "drawn"} or candidate.case is None:
        return REASONS[candidate.reason]
    quoted = [f"“{word}”" for word in shared]
    words = " and ".join(filter(None, (", ".join(quoted[:-1]), *quoted[-1:])))
    near = f"it shares {words} with the query" if shared else "its meaning is similar to the query"
    ended = "its run failed, so it is a warning" if candidate.features.get("failed") else "its run went well"
    if candidate.case.outcome == "unknown":
        ended = "the outcome of its run is not known"
    return f"{'Chosen' if candidate.reason == 'chosen' else 'Chosen at random'}: {near}, and {ended}."


router = APIRouter(prefix=f"{ROOT}/decisions", route_class=Page, include_in_schema=False)


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
