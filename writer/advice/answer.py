"""A failed call that asks for advice, and its answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Self
from uuid import UUID

import numpy as np

from policy.advice import RIGHT
from policy.channels import Terms
from policy.channels import words as distinct_words
from retrieval.advice.text import TOKENS, AdvisedFix, AdvisedPlan
from retrieval.sealed import ERROR, MOVES, REQUEST, SIGN, TERMS, TOOL
from writer.analysis.calls import Call
from writer.analysis.fixes import Sign, line_of, sign_of
from writer.privacy.words import Words

Silence = Literal[
    "not_failed", "off", "unknown_failure", "never_fixed", "unsure", "told_already", "tried", "unproven", "no_room"
]
"""Reasons why an answer to a failed call has no fix."""


@dataclass(frozen=True, slots=True)
class FailedCall:
    """A call that has just failed, and the run that it belongs to.

    Attributes:
        call: the call, with its error; a call without an error did not fail.
        task: the task of the run; empty: the caller did not give the task.
        run_id: the run in progress; None: the caller did not give the run.
        retrieval_id: the retrieval with which the run began; None: the caller did not give the retrieval.
        session: name of the session that the run is part of; None: the caller did not give the session.
        tried: calls that the run made after the failed call; the answer repeats no fix that they tried.
        precision: share of told fixes that should be right, 0 to 1; a lower share tells more fixes.
        token_budget: maximum tokens of the answer's text.
        plans: maximum number of plans of like runs that are told after the fixes; 0: none.
    """

    agent_key: str
    call: Call
    task: str = ""
    run_id: UUID | None = None
    retrieval_id: UUID | None = None
    session: str | None = None
    tried: Sequence[Call] = ()
    precision: float = RIGHT
    token_budget: int = TOKENS
    plans: int = 0


def first_like(failed: Call, calls: Sequence[Call]) -> tuple[Call, Sequence[Call]]:
    """Returns the first of a run's calls that failed like the failed call, and the calls tried after it."""
    line = line_of(failed)
    like = (place for place, call in enumerate(calls) if failed.failed and call.failed and line_of(call) == line)
    first = next(like, calls.index(failed))
    return calls[first], calls[first + 1 :]


@dataclass(frozen=True, slots=True)
class HashedFailure:
    """A failed call as keyed hashes, in which form it is compared with the earlier failures in the bank.

    Attributes:
        sign: the line, tool, error and call by which like failures are recognised.
        number, tool: keyed hashes of the sign's line and of the called tool.
        request: keyed hash of the whole request.
        terms: keyed hashes of the words of the error, the call and the task, by the names of ``policy.advice.SHARES``.
    """

    words: Words
    failed: FailedCall
    sign: Sign
    number: int
    tool: int
    request: int
    terms: Mapping[str, Terms]

    @classmethod
    def of(cls, words: Words, failed: FailedCall) -> Self:
        """Returns the failed call, hashed by the user's key."""
        sign = sign_of(failed.call, failed.task)
        texts = {"error": (ERROR, sign.error), "call": (MOVES, sign.call), "task": (TERMS, distinct_words(failed.task))}
        terms = {name: np.array(words.numbers(*each), dtype=np.int32) for name, each in texts.items()}
        number, tool, request = (
            words.numbers(kind, [text])[0]
            for kind, text in ((SIGN, sign.line), (TOOL, sign.tool), (REQUEST, repr(failed)))
        )
        return cls(words, failed, sign, number, tool, request, terms)


@dataclass(frozen=True, slots=True)
class AdviceAnswer:
    """The answer to a failed call: fixes to tell, best first, or the reason why there are none.

    Attributes:
        advice_id: id of the logged decision; None: no earlier failures were read, and nothing was logged.
        stopped: number of earlier runs that met this failure, if it ended all of them; else 0.
        degraded: "unreadable" if earlier failures or plans were left out because they do not decrypt.
    """

    advice_id: UUID | None = None
    text: str = ""
    fixes: Sequence[AdvisedFix] = ()
    plans: Sequence[AdvisedPlan] = ()
    why_empty: Silence | None = None
    stopped: int = 0
    degraded: list[str] = field(default_factory=list)
