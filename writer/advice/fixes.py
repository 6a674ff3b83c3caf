"""The fixes of earlier failures that are told at a failed call, or the reason why there are none."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from policy.advice import Failures
from policy.agreement import Matrix
from retrieval.advice.failures import FailureRow
from retrieval.advice.text import LEAST_RUNS, AdvisedFix, AdvisedPlan, advice_text, with_plans
from retrieval.errors import SealBroken
from retrieval.tables.kinds import has_failed, is_trusted, went_well
from writer.advice.answer import AdviceAnswer, HashedFailure, Silence
from writer.advice.store import fix_number
from writer.analysis.dangers import names_danger
from writer.analysis.fixes import change_terms, has_change
from writer.privacy.words import Words

MOST_TOLD = 4
MOST_LOOKED_AT = 16
"""Maximum number of fixes that are compared with the failed call; those with the highest confidence come first."""


@dataclass(frozen=True, slots=True)
class LikeFailures:
    """The earlier failures that bear on a failed call.

    Attributes:
        failure: the failed call.
        alike: earlier failures of the same kind.
        sure: earlier failures whose fix is confident enough to be told, best first, each with its confidence, 0 to 1.
        in_vain: true if a fix was left out because this run already made a call with that fix, in vain.
        plans: plans of like runs, to tell after the fixes.
    """

    failure: HashedFailure
    alike: Sequence[FailureRow]
    sure: Sequence[tuple[FailureRow, float]]
    in_vain: bool
    plans: Sequence[AdvisedPlan]

    def silence(self) -> AdviceAnswer:
        """Returns an answer without a fix; its text says if the same failure ended every earlier run that met it."""
        stopped = len({row.case_id for row in self.alike if row.sign == self.failure.number})
        passed = any(row.fix or went_well(row.outcome, row.reward, row.reward_source) for row in self.alike)
        if self.alike and not passed and stopped >= LEAST_RUNS:
            error = opened(self.failure.words, self.alike[-1])["error"]
            text, _ = advice_text(self.failure.sign.tool, error, (), stopped, self.failure.failed.token_budget)
            return replace(self._without_fix("never_fixed", text), stopped=stopped)
        return self._without_fix("tried" if self.in_vain else "unsure" if self.alike else "unknown_failure")

    def _without_fix(self, why: Silence, text: str = "") -> AdviceAnswer:
        """Returns an answer with plans alone, after the text if there is one; without plans, it may be empty."""
        text, plans = with_plans(text, self.plans, self.failure.failed.token_budget)
        return AdviceAnswer(text=text, plans=plans, why_empty=why)

    def fixes(self) -> AdviceAnswer:
        """Returns an answer with the best fixes that this run was not told and did not try."""
        failed = self.failure.failed
        tried = {fix_number(self.failure.words, change_terms(failed.call, call)) for call in failed.tried}
        told: dict[int, AdvisedFix] = {}
        plans: list[Sequence[str]] = []
        why: Silence = "unsure"
        error = ""
        for row, confidence in self.sure:
            if row.words is None or row.fix_id is None or row.fix_id in told:
                continue
            texts = opened(self.failure.words, row)
            fix = texts["fix"]
            if any(map(names_danger, fix.get("plan", ()))):
                fix = {**fix, "dangerous": True} if row.proven else {**fix, "plan": []}
            if row.told_here or row.fix_id in tried:
                why = "told_already" if row.told_here else "tried"
            elif fix["dangerous"] and not row.proven:
                why = "unproven"
            elif len(told) < MOST_TOLD and (not (plan := fix.get("plan", [])) or plan not in plans):
                plans.append(plan)
                error = error or texts["error"]
                assert row.case_id is not None  # noqa: S101 - for the type checker
                runs = {each.case_id for each in self.alike} | {row.case_id}
                made = [row, *(each for each in self.alike if each.fix_id == row.fix_id)]
                counts = len({each.case_id for each in made}), len(runs), row.told, row.helped
                sure = round(min(confidence, 1.0), 3)
                denied = all(
                    is_trusted(each.reward_source) and has_failed(each.outcome, each.reward, each.reward_source)
                    for each in made
                )
                told[row.fix_id] = AdvisedFix(fix, row.fix_id, row.case_id, sure, *counts, row.proven, denied)
        if not told:
            return self._without_fix(why)
        text, fixes = advice_text(self.failure.sign.tool, error, list(told.values()), 0, failed.token_budget)
        if not fixes:
            return self._without_fix("no_room")
        sources = {each.case_id for each in fixes}
        theirs = [each.plan for each in fixes]
        others = [each for each in self.plans if each.case_id not in sources and list(each.plan) not in theirs]
        text, plans_told = with_plans(text, others, failed.token_budget)
        return AdviceAnswer(text=text, fixes=fixes, plans=plans_told)


def in_vain(failure: HashedFailure, rows: Sequence[FailureRow], confidence: Matrix) -> NDArray[np.bool_]:
    """Returns, for each earlier failure, whether the failed call or a call tried since already made its fix.

    Only the MOST_LOOKED_AT fixes of the highest confidence are compared; the others count as not made.
    """
    had: dict[int | None, bool] = {}
    for place in np.argsort(-confidence, kind="stable"):
        row = rows[place]
        if not confidence[place] or len(had) == MOST_LOOKED_AT:
            break
        if row.words is not None and row.fix_id not in had:
            fix = opened(failure.words, row)["fix"]
            calls = failure.failed.call, *failure.failed.tried
            had[row.fix_id] = any(has_change(call, fix["terms"], fix["changes"]) for call in calls)
    return np.array([had.get(row.fix_id, False) for row in rows], dtype=np.bool_)


def opened(words: Words, row: FailureRow) -> dict[str, Any]:
    """Returns the decrypted error and fix of an earlier failure."""
    assert row.case_id is not None and row.place is not None and row.words is not None  # noqa: S101, PT018 - as above
    opened: dict[str, Any] = words.open("failure", row.words, row.case_id, row.place)
    return opened


def decrypts(words: Words, row: FailureRow) -> bool:
    """Returns whether the error and the fix of an earlier failure decrypt."""
    try:
        opened(words, row)
    except SealBroken:
        return False
    return True


def failures_in(rows: Sequence[FailureRow]) -> Failures:
    """Returns earlier failures as the arrays that ``policy.advice`` reads."""
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
