"""Answers an agent whose call has just failed: the fixes of like failures in earlier runs, or the reason for none.

The failed call is hashed by the user's key, and one statement reads the agent's earlier failures.
``policy.advice`` ranks their fixes and sets the confidence that a fix must reach; the answer is logged as a decision.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import uuid_utils.compat as uuids
from cachetools import LRUCache

from policy.advice import Failures, advise, threshold
from retrieval.advice.failures import EARLIER_FAILURES, LOG_ADVICE, MOST, FailureRow
from retrieval.advice.text import ToldPlan
from retrieval.database.database import Database
from retrieval.ranking.decisions import LoggedDecision, log
from retrieval.sealed import Opener
from retrieval.tables.decisions import ADVICE
from retrieval.tokens import count_tokens
from writer.advice.answer import Answer, Asked, FailedCall
from writer.advice.fixes import MOST_TOLD, Found, failures_in, in_vain
from writer.advice.plans import plans_for
from writer.author import Author
from writer.privacy.keys import Keyring
from writer.privacy.words import WordSeals

POLICY = "advice-1"
"""Version of the advice rule, as the log of decisions names it."""
LIKE = 0.75
"""Least match of two errors, 0 to 1, at which an earlier failure counts as the same kind as the failed call."""


class Thresholds:
    """A cache of the confidence that a fix must reach, by agent; computed again when the agent's failures change."""

    def __init__(self, capacity: int = 2_000) -> None:
        self._known: LRUCache[tuple[object, ...], float] = LRUCache(capacity)

    async def of(self, user_sub: str, rows: Sequence[FailureRow], past: Failures, precision: float) -> float:
        """Returns the confidence that a fix must reach to be told, see ``policy.advice.threshold``."""
        last = rows[-1]
        evidence = sum(row.told for row in rows), sum(row.proven for row in rows)
        key = user_sub, precision, last.case_id, last.place, len(rows), *evidence
        if key not in self._known:
            self._known[key] = await asyncio.to_thread(threshold, past, precision)
        return self._known[key]


@dataclass(frozen=True, slots=True)
class Adviser:
    """The part of the service that answers failed calls."""

    database: Database
    keyring: Keyring
    thresholds: Thresholds = field(default_factory=Thresholds)

    async def advise(self, author: Author, failed: FailedCall) -> Answer:
        """Returns the advice for a failed call, and logs it as a decision, with or without a fix.

        Raises:
            SealBroken: an earlier failure was changed in the database.
        """
        if not failed.call.failed:
            return Answer(why_empty="not_failed")
        async with self.database.fast(author.user_sub, author.authorised_at) as connection:
            seals = WordSeals(self.keyring)
            asked = Asked.of(await seals.of_user(self.database, connection), failed)
            parameters = {
                "agent_key": failed.agent_key,
                "tool": asked.tool,
                "sign": asked.number,
                "run_id": failed.run_id,
                "retrieval_id": failed.retrieval_id,
                "session": failed.session,
                "runs": MOST if failed.plans else 0,
            }
            rows = await connection.all(EARLIER_FAILURES, parameters)
            if not rows or not rows[0].enabled:
                return Answer(why_empty="off" if rows else "unknown_failure")
            rows = [row for row in rows if row.case_id is not None]
            opener = Opener(self.database, seals)
            plans = await plans_for(connection, opener, rows, asked)
            answer = await self._answer(asked, [row for row in rows if row.place is not None], plans)
            entry = _entry(asked, answer)
            await log(connection, entry, answer.text, opener)
            told = [each.fix_id for each in answer.fixes]
            await connection.value(LOG_ADVICE, {**parameters, "decision_id": entry.id, "fix_ids": told})
        return answer

    async def _answer(self, asked: Asked, rows: Sequence[FailureRow], plans: Sequence[ToldPlan]) -> Answer:
        """Returns the answer that follows from these earlier failures, with these plans of like runs."""
        advice_id = uuids.uuid7()
        if any(row.proven and row.sign == asked.number for row in rows):  # what anybody can plant waits behind proof
            rows = [row for row in rows if row.proven or row.sign != asked.number]
        if not rows:
            return Found(asked, [], [], in_vain=False, plans=plans).silence(advice_id)
        past = failures_in(rows)
        advised = advise(past, asked.terms, asked.tool)
        least = await self.thresholds.of(asked.words.user_sub, rows, past, asked.failed.precision)
        alike = [row for row, known in zip(rows, advised.known, strict=True) if known >= LIKE and row.words is not None]
        confidence = advised.confidence
        vain = in_vain(asked, rows, confidence)
        if vain.any():
            confidence = advise(past, asked.terms, asked.tool, vain).confidence
        best = np.argsort(-confidence, kind="stable")
        sure = [(rows[place], float(confidence[place])) for place in best if confidence[place] >= least]
        found = Found(asked, alike, sure, bool(vain.any()), plans)
        return found.fixes(advice_id) if sure else found.silence(advice_id)


def _entry(asked: Asked, answer: Answer) -> LoggedDecision:
    """Returns the entry that logs the advice as a decision; its slate are the runs of the fixes and plans."""
    assert answer.advice_id is not None  # noqa: S101 - for the type checker
    sources = list(dict.fromkeys([each.case_id for each in answer.fixes] + [each.case_id for each in answer.plans]))
    return LoggedDecision(
        id=answer.advice_id,
        agent_key=asked.failed.agent_key,
        query=asked.sign.line,
        rewritten=None,
        mode=ADVICE,
        degraded=[],
        policy_version=POLICY,
        feature_version=0,
        seed=0,
        arm="default",
        k=MOST_TOLD,
        min_similarity=None,
        slate_propensity=1.0,
        candidate_ids=[],
        candidate_groups=[],
        candidate_sources=[],
        features=b"",
        scores=[],
        procedure_ids=[],
        procedure_versions=[],
        tokens=count_tokens(answer.text),
        case_ids=sources,
        propensities=[1.0] * len(sources),
    )
