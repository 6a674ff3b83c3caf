"""Answers an agent whose call has just failed: the fixes of like failures in earlier runs, or the reason for none.

The failed call is hashed by the user's key, and one statement reads the agent's earlier failures.
``policy.advice`` ranks their fixes and sets the confidence that a fix must reach; the answer is logged as a decision.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, cast
from uuid import UUID

import numpy as np
import uuid_utils.compat as uuids
from cachetools import LRUCache
from pydantic import JsonValue

from policy.advice import Failures, advise, threshold
from policy.plans import RunsThatWentWell, plan_likeness
from retrieval.advice.failures import EARLIER_FAILURES, HOLD_SESSION, LOG_ADVICE, MOST, PLANS_OF, FailureRow
from retrieval.advice.text import AdvisedPlan
from retrieval.database.database import Database
from retrieval.database.fast_path import FastConnection
from retrieval.errors import SealBroken
from retrieval.ranking.decisions import log
from retrieval.sealed import MOVES, Opener, opened, unreadable
from retrieval.tables.decisions import ADVICE
from retrieval.tables.kinds import went_well
from retrieval.text import shortened
from retrieval.tokens import count_tokens
from writer.advice.answer import AdviceAnswer, FailedCall, HashedFailure
from writer.advice.fixes import MOST_TOLD, LikeFailures, decrypts, failures_in, in_vain
from writer.analysis.dangers import names_danger
from writer.analysis.fixes import MOST_PARTS, PART_CHARS
from writer.analysis.moves import moves_of_call
from writer.author import Author
from writer.privacy.keys import Keyring
from writer.retain.plan import step_of

MOST_OPENED = 16
"""Maximum number of runs whose plans are decrypted; several runs may have the same plan, which is returned once."""


async def plans_for(
    connection: FastConnection, opener: Opener, rows: Sequence[FailureRow], failure: HashedFailure
) -> tuple[list[AdvisedPlan], bool]:
    """Returns different plans of earlier successful runs, those of the runs most like this run first.

    Also returns whether a plan was left out because it does not decrypt.

    A plan that the run already got is left out, and so is one whose calls the run tried. A plan that destroys something
    or skips a check is returned only if its run is proven.
    """
    runs: dict[UUID, list[FailureRow]] = {}
    for row in rows:
        if row.case_id and row.newest and not row.shown_here and went_well(row.outcome, row.reward, row.reward_source):
            runs.setdefault(row.case_id, []).append(row)
    if not runs or not failure.failed.plans:
        return [], False
    ids, of_run = list(runs), [each[0] for each in runs.values()]
    met = [(number, row.error) for number, each in enumerate(runs.values()) for row in each if row.place is not None]
    past = RunsThatWentWell(
        task=[np.array(row.terms, np.int32) for row in of_run],
        errors=[np.array(terms, np.int32) for _, terms in met],
        met_by=np.array([number for number, _ in met], np.int32),
        proven=np.array([row.proven for row in of_run], np.bool_),
    )
    likeness = plan_likeness(past, failure.terms["task"], failure.terms["error"])
    best = [place for place in np.argsort(-likeness, kind="stable")[:MOST_OPENED] if likeness[place] > 0]
    rows_of_plans = await connection.all(PLANS_OF, {"case_ids": [ids[place] for place in best]})
    steps, moves = await asyncio.to_thread(_tried, failure)
    seal = await opener.seal_of(connection, rows_of_plans)
    cases = [opened(row, seal) for row in rows_of_plans]
    broken = unreadable(cases)
    plans = {
        row.id: plan
        for row in cases
        if row.id not in broken
        and not {*(plan := row.plan)} <= steps
        and not (len({*row.moves}) < len(row.moves) and {*row.moves} <= moves)  # a change stands in it several times
    }
    advised: dict[tuple[str, ...], AdvisedPlan] = {}
    for place in best:
        plan = tuple(shortened(step, PART_CHARS) for step in plans.get(ids[place], ())[:MOST_PARTS])
        proven, dangerous = of_run[place].proven, any(map(names_danger, plan))
        if plan and plan not in advised and (proven or not dangerous):
            advised[plan] = AdvisedPlan(plan, ids[place], round(float(likeness[place]), 3), proven, dangerous)
    return list(advised.values())[: failure.failed.plans], bool(broken)


def _tried(failure: HashedFailure) -> tuple[set[str], set[int]]:
    """Returns the failed call and those tried since as steps of a plan, and the keyed hashes of their moves.

    Calls with a statement or with code have no moves here: other statements of one kind have the same.
    """
    calls = (failure.failed.call, *failure.failed.tried)
    steps = {step_of(call.tool, cast("JsonValue", call.arguments)) for call in calls}
    each = ([move for move, _ in moves_of_call(call)] for call in calls)
    moves = [
        move
        for first, *rest in each
        if all(move.startswith(first.removeprefix("tool:")) for move in rest)
        for move in (first, *rest)
    ]
    return steps, {*failure.words.numbers(MOVES, moves)}


POLICY = "advice-1"
"""Version of the advice rule, as the log of decisions names it."""
LIKE = 0.75
"""Least match of two errors, 0 to 1, at which an earlier failure counts as the same kind as the failed call."""


class Thresholds:
    """A cache of the confidence that a fix must reach, by agent; computed again when the agent's failures change."""

    def __init__(self) -> None:
        self._known: LRUCache[tuple[object, ...], float] = LRUCache(2_000)

    async def of(self, user_sub: str, rows: Sequence[FailureRow], past: Failures, precision: float) -> float:
        """Returns the confidence that a fix must reach, see ``policy.advice.threshold``."""
        key = user_sub, precision, hash(tuple((row.case_id, row.place, row.proven) for row in rows))
        if key not in self._known:
            self._known[key] = await asyncio.to_thread(threshold, past, precision)
        return self._known[key]


@dataclass(frozen=True, slots=True)
class Adviser:
    """The part of the service that answers failed calls."""

    database: Database
    keyring: Keyring
    thresholds: Thresholds = field(default_factory=Thresholds)

    async def advise(self, author: Author, failed: FailedCall) -> AdviceAnswer:
        """Returns the advice for a failed call, and logs it as a decision, with or without a fix.

        If the run repeats a request, it gets the first answer again, which is not logged twice. Earlier failures and
        plans that do not decrypt are left out.
        """
        if not failed.call.failed:
            return AdviceAnswer(why_empty="not_failed")
        async with self.database.fast(author.user_sub, author.authorised_at) as connection:
            words = await self.keyring.of_user(self.database, connection)
            failure = await asyncio.to_thread(HashedFailure.of, words, failed)  # these may be megabytes
            parameters = {
                "agent_key": failed.agent_key,
                "tool": failure.tool,
                "sign": failure.number,
                "run_id": failed.run_id,
                "retrieval_id": failed.retrieval_id,
                "session": failed.session,
                "request": failure.request,
                "runs": MOST if failed.plans else 0,
            }
            rows = await connection.all(EARLIER_FAILURES, parameters)
            if not rows or not rows[0].enabled:
                return AdviceAnswer(why_empty="off" if rows else "unknown_failure")
            first = rows[0]
            rows = [row for row in rows if row.case_id is not None]
            opener = Opener(self.database, self.keyring)
            plans, broken = await plans_for(connection, opener, rows, failure)
        # without a connection, for a threshold may take a while
        met = [row for row in rows if row.place is not None]
        try:
            answer = await self._answer(failure, met, plans)
        except SealBroken:
            broken, met = True, [row for row in met if row.words is None or decrypts(failure.words, row)]
            answer = await self._answer(failure, met, plans)
        advice_id = uuids.uuid7()
        answer = replace(answer, advice_id=advice_id, degraded=["unreadable"] if broken else [])
        if first.repeated_id is not None and first.repeated_text is not None:
            with suppress(SealBroken):
                if failure.words.open("told", first.repeated_text, first.repeated_id) == answer.text:
                    return replace(answer, advice_id=first.repeated_id)
        entry = _entry(failure, answer)
        logged = {**parameters, "decision_id": entry["id"], "fix_ids": [fix.fix_id for fix in answer.fixes]}
        async with (
            self.database.fast(author.user_sub, author.authorised_at) as connection,
            connection.driver.transaction(),  # a deletion in between would find the one without the other
        ):
            await connection.value(HOLD_SESSION, parameters)
            await log(connection, entry, answer.text, opener)
            await connection.value(LOG_ADVICE, logged)
        return answer

    async def _answer(
        self, failure: HashedFailure, rows: Sequence[FailureRow], plans: Sequence[AdvisedPlan]
    ) -> AdviceAnswer:
        """Returns the answer that follows from these earlier failures, with these plans of like runs.

        What anybody can plant waits behind proof: it is returned only where no proven fix is.
        """
        if any(row.proven and row.sign == failure.number for row in rows):
            rows = [row for row in rows if row.proven or row.sign != failure.number]
        past = failures_in(rows)
        if (waits := past.waiting).any():
            proven = [row for row, wait in zip(rows, waits, strict=True) if not wait]
            if (answer := await self._answer_from(failure, proven, failures_in(proven), plans)).fixes:
                return answer
        return await self._answer_from(failure, rows, past, plans)

    async def _answer_from(
        self, failure: HashedFailure, rows: Sequence[FailureRow], past: Failures, plans: Sequence[AdvisedPlan]
    ) -> AdviceAnswer:
        """Returns the answer that follows from these earlier failures alone, as rows and as arrays."""
        if not rows:
            return LikeFailures(failure, [], [], in_vain=False, plans=plans).silence()
        advised = advise(past, failure.terms, failure.tool)
        least = await self.thresholds.of(failure.words.user_sub, rows, past, failure.failed.precision)
        alike = [row for row, known in zip(rows, advised.known, strict=True) if known >= LIKE and row.words is not None]
        confidence = advised.confidence
        vain = await asyncio.to_thread(in_vain, failure, rows, confidence)  # of many long calls, it takes seconds
        if vain.any():
            confidence = advise(past, failure.terms, failure.tool, vain).confidence
        best = np.argsort(-confidence, kind="stable")
        sure = [(rows[place], float(confidence[place])) for place in best if confidence[place] >= least]
        like = LikeFailures(failure, alike, sure, bool(vain.any()), plans)
        return like.fixes() if sure else like.silence()


def _entry(failure: HashedFailure, answer: AdviceAnswer) -> dict[str, Any]:
    """Returns the entry that logs the advice as a decision; its slate are the runs of the fixes and plans."""
    sources = list(dict.fromkeys([each.case_id for each in answer.fixes] + [each.case_id for each in answer.plans]))
    return {
        "id": answer.advice_id,
        "agent_key": failure.failed.agent_key,
        "query": failure.sign.line,
        "rewritten": None,
        "mode": ADVICE,
        "degraded": answer.degraded,
        "policy_version": POLICY,
        "feature_version": 0,
        "seed": 0,
        "arm": "default",
        "k": MOST_TOLD,
        "min_similarity": None,
        "slate_propensity": 1.0,
        "candidate_ids": [],
        "candidate_groups": [],
        "candidate_sources": [],
        "features": b"",
        "scores": [],
        "procedure_ids": [],
        "procedure_versions": [],
        "tokens": count_tokens(answer.text),
        "case_ids": sources,
        "propensities": [1.0] * len(sources),
        "quoted_ids": sources,
        "quoted_sessions": [],
    }
