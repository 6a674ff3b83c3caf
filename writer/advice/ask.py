"""Answers an agent whose call has just failed: what put such a failure right in earlier runs, or silence.

A request becomes terms by the user's key, and the agent's earlier failures are read in one statement.
``policy.advice`` ranks their fixes and sets the threshold; the answer is logged as a decision.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

import numpy as np
import uuid_utils.compat as uuids
from cachetools import LRUCache
from numpy.typing import NDArray

from policy.advice import RIGHT, Failures, advise, threshold
from policy.agreement import Matrix
from policy.channels import words as distinct_words
from retrieval.advice.failures import EARLIER_FAILURES, LOG_ADVICE, FailureRow
from retrieval.advice.text import LEAST_RUNS, TOKENS, ToldFix, advice_text
from retrieval.database.database import Database
from retrieval.ranking.decisions import LoggedDecision, log
from retrieval.sealed import ERROR, MOVES, SIGN, TERMS, TOOL, Opener
from retrieval.tables.decisions import ADVICE
from retrieval.tables.kinds import went_well
from retrieval.tokens import count_tokens
from writer.advice.store import fix_number
from writer.analysis.calls import Call
from writer.analysis.fixes import Sign, change_terms, has_change, sign_of
from writer.author import Author
from writer.privacy.keys import Keyring
from writer.privacy.words import Words, WordSeals

POLICY = "advice-1"
"""Version of the rule, in the log of decisions."""
MOST_TOLD = 4
MOST_LOOKED_AT = 16
"""Most fixes that are compared with the failed call."""
LIKE = 0.75
"""Least match of the error at which an earlier failure counts as the same kind."""

Silence = Literal[
    "not_failed", "off", "unknown_failure", "never_fixed", "unsure", "told_already", "tried", "unproven", "no_room"
]
"""Reasons for advice without a fix."""


@dataclass(frozen=True, slots=True)
class FailedCall:
    """A call that has just failed, and the run that it belongs to.

    Attributes:
        call: the call, with its error; one without an error did not fail.
        task: the task of the run; empty: it was not told.
        run_id: the run in progress; None: it was not told.
        retrieval_id: the retrieval that the run began with; None: it was not told.
        tried: calls of this run that were tried since, whose like is not told.
        precision: share of told fixes that should be right, 0 to 1; the lower, the more is told.
        token_budget: maximum tokens of the text.
    """

    agent_key: str
    call: Call
    task: str = ""
    run_id: UUID | None = None
    retrieval_id: UUID | None = None
    tried: Sequence[Call] = ()
    precision: float = RIGHT
    token_budget: int = TOKENS


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a failed call: fixes to tell, best first, or the reason why there are none.

    Attributes:
        advice_id: id of the logged decision; None: there was nothing to decide.
        stopped: number of earlier runs, all of which this failure stopped; 0: some got past it, or none met it.
    """

    advice_id: UUID | None = None
    text: str = ""
    fixes: Sequence[ToldFix] = ()
    why_empty: Silence | None = None
    stopped: int = 0


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
            }
            rows = await connection.all(EARLIER_FAILURES, asked)
            if not rows or not rows[0].enabled:
                return Answer(why_empty="off" if rows else "unknown_failure")
            rows = [row for row in rows if row.case_id is not None]
            answer = await self._answer(words, failed, sign, rows)
            entry = _entry(failed, sign, answer)
            await log(connection, entry, answer.text, Opener(self.database, seals))
            told = [each.fix_id for each in answer.fixes]
            await connection.value(LOG_ADVICE, {**asked, "decision_id": entry.id, "fix_ids": told})
        return answer

    async def _answer(self, words: Words, failed: FailedCall, sign: Sign, rows: Sequence[FailureRow]) -> Answer:
        """Returns the answer of these earlier failures."""
        advice_id = uuids.uuid7()
        number = words.numbers(SIGN, [sign.line])[0]
        if any(row.proven and row.sign == number for row in rows):  # what anybody can plant waits behind proof
            rows = [row for row in rows if row.proven or row.sign != number]
        if not rows:
            return Answer(advice_id, why_empty="unknown_failure")
        past = _failures(rows)
        terms = {
            "error": words.numbers(ERROR, sign.error),
            "call": words.numbers(MOVES, sign.call),
            "task": words.numbers(TERMS, distinct_words(failed.task)),
        }
        tool = words.numbers(TOOL, [sign.tool])[0]
        asked = {name: np.array(each, dtype=np.int32) for name, each in terms.items()}
        advised = advise(past, asked, tool)
        least = await self.thresholds.of(words.user_sub, rows, past, failed.precision)
        alike = [row for row, known in zip(rows, advised.known, strict=True) if known >= LIKE and row.words is not None]
        confidence = advised.confidence
        in_vain = _in_vain(words, failed, rows, confidence)
        if in_vain.any():
            confidence = advise(past, asked, tool, in_vain).confidence
        best = np.argsort(-confidence, kind="stable")
        sure = [(rows[place], float(confidence[place])) for place in best if confidence[place] >= least]
        found = _Found(words, failed, sign, number, alike, sure, bool(in_vain.any()))
        return found.fixes(advice_id) if sure else found.silence(advice_id)


@dataclass(frozen=True, slots=True)
class _Found:
    """The earlier failures that bear on a failed call.

    Attributes:
        number: keyed hash of the sign.
        alike: earlier failures of the same kind.
        sure: earlier failures with a fix whose confidence reaches the threshold, best first, each with it.
        in_vain: whether a fix was left out that a failed call of this run already has.
    """

    words: Words
    failed: FailedCall
    sign: Sign
    number: int
    alike: Sequence[FailureRow]
    sure: Sequence[tuple[FailureRow, float]]
    in_vain: bool

    def silence(self, advice_id: UUID) -> Answer:
        """Returns the answer without a fix; where the same failure stopped every earlier run, the text says so."""
        if not self.alike:
            return Answer(advice_id, why_empty="unknown_failure")
        stopped = len({row.case_id for row in self.alike if row.sign == self.number})
        passed = any(row.fix or went_well(row.outcome, row.reward, row.reward_source) for row in self.alike)
        if passed or stopped < LEAST_RUNS:
            return Answer(advice_id, why_empty="tried" if self.in_vain else "unsure")
        error = _opened(self.words, self.alike[-1])["error"]
        text = advice_text(self.sign.tool, error, (), stopped, self.failed.token_budget)
        return Answer(advice_id, text, why_empty="never_fixed", stopped=stopped)

    def fixes(self, advice_id: UUID) -> Answer:
        """Returns the answer with the best fixes that this run was not told and did not try."""
        tried = {fix_number(self.words, change_terms(self.failed.call, call)) for call in self.failed.tried}
        told: dict[int, ToldFix] = {}
        plans: list[Sequence[str]] = []
        why: Silence = "unsure"
        error = ""
        for row, confidence in self.sure:
            if row.words is None or row.fix_id is None or row.fix_id in told:
                continue
            opened = _opened(self.words, row)
            if row.told_here or row.fix_id in tried:
                why = "told_already" if row.told_here else "tried"
            elif opened["fix"]["dangerous"] and not row.proven:
                why = "unproven"
            elif len(told) < MOST_TOLD and (not (plan := opened["fix"].get("plan")) or plan not in plans):
                plans.append(plan)
                error = error or opened["error"]
                told[row.fix_id] = self._told(row, opened["fix"], confidence)
        text = advice_text(self.sign.tool, error, list(told.values()), 0, self.failed.token_budget)
        if not text:
            return Answer(advice_id, why_empty="no_room" if told else why)
        return Answer(advice_id, text, list(told.values()))

    def _told(self, row: FailureRow, fix: Mapping[str, Any], confidence: float) -> ToldFix:
        assert row.case_id is not None and row.fix_id is not None  # noqa: S101, PT018 - for the type checker
        runs = {each.case_id for each in self.alike} | {row.case_id}
        worked = {each.case_id for each in self.alike if each.fix_id == row.fix_id} | {row.case_id}
        counts = len(worked), len(runs), row.told, row.helped
        return ToldFix(fix, row.fix_id, row.case_id, round(min(confidence, 1.0), 3), *counts, row.proven)


def _in_vain(words: Words, failed: FailedCall, rows: Sequence[FailureRow], confidence: Matrix) -> NDArray[np.bool_]:
    """Returns which failures have a fix that the failed call, or one tried since, already has; of the surest fixes."""
    had: dict[int | None, bool] = {}
    for place in np.argsort(-confidence, kind="stable"):
        row = rows[place]
        if not confidence[place] or len(had) == MOST_LOOKED_AT:
            break
        if row.words is not None and row.fix_id not in had:
            terms = _opened(words, row)["fix"]["terms"]
            had[row.fix_id] = any(has_change(call, terms) for call in (failed.call, *failed.tried))
    return np.array([had.get(row.fix_id, False) for row in rows], dtype=np.bool_)


def _opened(words: Words, row: FailureRow) -> dict[str, Any]:
    assert row.case_id is not None and row.words is not None  # noqa: S101, PT018 - for the type checker
    return words.open_failure(row.case_id, row.place, row.words)


def _failures(rows: Sequence[FailureRow]) -> Failures:
    """Returns the rows as the policy reads them."""
    runs: dict[UUID | None, int] = {}
    lists = {"error": "error", "call": "call", "task": "terms"}
    return Failures(
        terms={name: [np.array(getattr(row, column), np.int32) for row in rows] for name, column in lists.items()},
        tool=np.array([row.tool for row in rows], np.int32),
        run=np.array([runs.setdefault(row.case_id, len(runs)) for row in rows], np.int32),
        fix=[np.array(row.fix, np.int32) for row in rows],
        proven=np.array([row.proven for row in rows], np.bool_),
        told=np.array([row.told for row in rows], np.float32),
        helped=np.array([row.helped for row in rows], np.float32),
    )


def _entry(failed: FailedCall, sign: Sign, answer: Answer) -> LoggedDecision:
    """Returns the entry that logs the advice as a decision; its slate are the runs that the fixes come from."""
    assert answer.advice_id is not None  # noqa: S101 - for the type checker
    sources = list(dict.fromkeys(each.case_id for each in answer.fixes))
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
