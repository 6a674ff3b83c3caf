"""Answers an agent whose call has just failed: what put such a failure right in earlier runs, or silence.

A request becomes terms by the user's key, and the agent's earlier failures are read in one statement.
``policy.advice`` ranks their fixes and sets the threshold; the answer is logged as a decision.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import uuid_utils.compat as uuids
from cachetools import LRUCache

from policy.advice import Failures, advise, threshold
from policy.channels import Terms
from policy.channels import words as distinct_words
from retrieval.advice.failures import EARLIER_FAILURES, LOG_ADVICE, MOST, FailureRow
from retrieval.advice.text import ToldPlan
from retrieval.database.database import Database
from retrieval.ranking.decisions import LoggedDecision, log
from retrieval.sealed import ERROR, MOVES, SIGN, TERMS, TOOL, Opener
from retrieval.tables.decisions import ADVICE
from retrieval.tokens import count_tokens
from writer.advice.answer import Answer, FailedCall
from writer.advice.fixes import MOST_TOLD, Found, failures_in, in_vain
from writer.advice.plans import plans_for
from writer.analysis.fixes import Sign, sign_of
from writer.author import Author
from writer.privacy.keys import Keyring
from writer.privacy.words import Words, WordSeals

POLICY = "advice-1"
"""Version of the rule, in the log of decisions."""
LIKE = 0.75
"""Least match of the error at which an earlier failure counts as the same kind."""


class Thresholds:
    """Remembered thresholds of agents' failures: one is computed anew when the failures change."""

    def __init__(self, capacity: int = 2_000) -> None:
        self._known: LRUCache[tuple[object, ...], float] = LRUCache(capacity)

    async def of(self, user_sub: str, rows: Sequence[FailureRow], past: Failures, precision: float) -> float:
        """Returns the threshold that replay sets, see ``policy.advice.threshold``."""
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
        """Returns advice for a failed call, and logs it, with or without a fix.

        Raises:
            SealBroken: an earlier failure was changed in the database.
            UserErased, DatabaseUnavailable: see ``Database.as_user``.
        """
        if not failed.call.failed:
            return Answer(why_empty="not_failed")
        sign = sign_of(failed.call)
        async with self.database.fast(author.user_sub, author.authorised_at) as connection:
            seals = WordSeals(self.keyring)
            words = await seals.of_user(self.database, connection)
            number = words.numbers(SIGN, [sign.line])[0]
            asked = {
                "agent_key": failed.agent_key,
                "tool": words.numbers(TOOL, [sign.tool])[0],
                "sign": number,
                "run_id": failed.run_id,
                "retrieval_id": failed.retrieval_id,
                "runs": MOST if failed.plans else 0,
            }
            rows = await connection.all(EARLIER_FAILURES, asked)
            if not rows or not rows[0].enabled:
                return Answer(why_empty="off" if rows else "unknown_failure")
            rows = [row for row in rows if row.case_id is not None]
            opener = Opener(self.database, seals)
            terms = _terms(words, failed, sign)
            plans = await plans_for(connection, opener, rows, terms, failed.plans)
            failures = [row for row in rows if row.place is not None]
            answer = await self._answer(words, failed, sign, terms, failures, plans)
            entry = _entry(failed, sign, answer)
            await log(connection, entry, answer.text, opener)
            told = [each.fix_id for each in answer.fixes]
            await connection.value(LOG_ADVICE, {**asked, "decision_id": entry.id, "fix_ids": told})
        return answer

    async def _answer(  # noqa: PLR0913, PLR0917 - all that the answer is made of
        self,
        words: Words,
        failed: FailedCall,
        sign: Sign,
        terms: dict[str, Terms],
        rows: Sequence[FailureRow],
        plans: Sequence[ToldPlan],
    ) -> Answer:
        """Returns the answer of these earlier failures, with these plans of like runs."""
        advice_id = uuids.uuid7()
        number = words.numbers(SIGN, [sign.line])[0]
        if any(row.proven and row.sign == number for row in rows):  # what anybody can plant waits behind proof
            rows = [row for row in rows if row.proven or row.sign != number]
        if not rows:
            return Found(words, failed, sign, number, [], [], in_vain=False, plans=plans).silence(advice_id)
        past = failures_in(rows)
        tool = words.numbers(TOOL, [sign.tool])[0]
        advised = advise(past, terms, tool)
        least = await self.thresholds.of(words.user_sub, rows, past, failed.precision)
        alike = [row for row, known in zip(rows, advised.known, strict=True) if known >= LIKE and row.words is not None]
        confidence = advised.confidence
        vain = in_vain(words, failed, rows, confidence)
        if vain.any():
            confidence = advise(past, terms, tool, vain).confidence
        best = np.argsort(-confidence, kind="stable")
        sure = [(rows[place], float(confidence[place])) for place in best if confidence[place] >= least]
        found = Found(words, failed, sign, number, alike, sure, bool(vain.any()), plans)
        return found.fixes(advice_id) if sure else found.silence(advice_id)


def _terms(words: Words, failed: FailedCall, sign: Sign) -> dict[str, Terms]:
    """Returns the terms of a failed call, by the names of ``policy.advice.SHARES``."""
    texts = {"error": (ERROR, sign.error), "call": (MOVES, sign.call), "task": (TERMS, distinct_words(failed.task))}
    return {name: np.array(words.numbers(*each), dtype=np.int32) for name, each in texts.items()}


def _entry(failed: FailedCall, sign: Sign, answer: Answer) -> LoggedDecision:
    """Returns the entry that logs the advice as a decision; its slate are the runs that the fixes come from."""
    assert answer.advice_id is not None  # noqa: S101 - for the type checker
    sources = list(dict.fromkeys([each.case_id for each in answer.fixes] + [each.case_id for each in answer.plans]))
    return LoggedDecision(
        id=answer.advice_id,
        agent_key=failed.agent_key,
        query=sign.line,
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
