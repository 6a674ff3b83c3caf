"""What is learned from one finished run: a fix, a failure lesson, a script, revisions of procedures that it used."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, TypeVar
from uuid import UUID

from retrieval.errors import DatabaseUnavailable, UserErased
from retrieval.tables.kinds import AbstractionLevel, has_failed
from retrieval.telemetry import log
from writer.analysis.calls import StoredRun
from writer.analysis.placeholders import clean
from writer.analysis.query_kind import query_kind
from writer.analysis.success_score import duration_ms, success_score
from writer.errors import LeaseLost
from writer.procedures.ports import Analysis, Draft, Learners
from writer.procedures.rules.analyst import RuleAnalyst
from writer.procedures.rules.revise import RuleReviser
from writer.procedures.rules.script import RuleAbstractor, trigger
from writer.procedures.rules.steps import task_type
from writer.run import ProcedureData

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Terms:
    """Which runs of a profile become scripts: those of at least this success score, at this level; None: none."""

    level: AbstractionLevel | None = "hybrid"
    least_success: float = 0.7


@dataclass(frozen=True, slots=True)
class UsedVersion:
    """A version of a procedure that a run used."""

    id: UUID
    version: int
    draft: Draft


@dataclass(frozen=True, slots=True)
class RunToLearnFrom:
    """A finished run, how it was rewarded, and what the backend said of it.

    Attributes:
        supplied_record: a learned-procedure record that the backend made itself.
        used: the procedures that it said it used.
        tags: of the case; the first one is the domain.
    """

    run: StoredRun
    reward: float | None = None
    reward_source: str | None = None
    supplied_record: Mapping[str, object] | None = None
    used: Sequence[UsedVersion] = ()
    tags: Sequence[str] = ()

    @property
    def failed(self) -> bool:
        """Returns whether the run missed its goal."""
        return has_failed(self.run.outcome, self.reward, self.reward_source)

    @property
    def success_score(self) -> float:
        """Returns how well it went, 0 to 1."""
        return success_score(self.run, self.reward, self.reward_source)


@dataclass(slots=True)
class Lessons:
    """New procedures, and revisions of those that were used, each beside the version it revises."""

    drafts: list[Draft] = field(default_factory=list)
    revisions: list[tuple[UsedVersion, Draft]] = field(default_factory=list)

    def triggers(self) -> list[str]:
        """Returns the trigger of each draft and then of each revision."""
        return [draft.trigger for draft in (*self.drafts, *(revision for _, revision in self.revisions))]


def rule_learners() -> Learners:
    """Returns the learners that need no language model."""
    return Learners(RuleAnalyst(), RuleAbstractor(), RuleReviser())


async def _nothing() -> None:
    """Waits for nothing."""


@dataclass(frozen=True, slots=True)
class _Attempts:
    """Asks learners; one that fails is logged and gives None.

    Attributes:
        before_each: awaited before a learner is asked.
    """

    before_each: Callable[[], Awaitable[None]]

    async def ask(self, what: str, answer: Callable[[], Awaitable[T | None]]) -> T | None:
        """Returns the learner's answer, or None where it raised an error that concerns this answer alone.

        Raises:
            UserErased, LeaseLost, DatabaseUnavailable: the case is no longer to be finished, or not now.
        """
        await self.before_each()
        try:
            return await answer()
        except (UserErased, LeaseLost, DatabaseUnavailable):
            raise
        except Exception as error:  # noqa: BLE001 - a case without a lesson is still a case
            log.warning(f"{what}.failed", error=type(error).__name__)
            return None


async def learn_from_run(
    finished: RunToLearnFrom, terms: Terms, learners: Learners, before_each: Callable[[], Awaitable[None]] = _nothing
) -> Lessons:
    """Returns what is learned from the run; a learner that fails costs its own answer and no other.

    A run with a supplied record has its own lesson, and is not abstracted; one that was broken off teaches nothing.
    ``before_each`` is awaited before a learner is asked.

    Raises:
        UserErased, LeaseLost, DatabaseUnavailable: the case is no longer to be finished, or not now.
    """
    attempts = _Attempts(before_each)
    run, lessons = finished.run, Lessons()
    if run.outcome == "aborted":
        return lessons
    revising = finished.failed and bool(finished.used)
    analysis = Analysis()
    if finished.supplied_record is None or revising:
        analysis = await attempts.ask("analyse", partial(learners.analyst.analyse, run, terms.level)) or analysis
    if finished.supplied_record is not None:
        lessons.drafts.append(_supplied_draft(run, finished.supplied_record))
    else:
        lessons.drafts += _lesson(run, analysis)
        if terms.level is not None and finished.success_score >= terms.least_success:
            draft = await attempts.ask("abstract", partial(learners.abstractor.abstract, run, terms.level))
            lessons.drafts += [draft] if draft is not None else []
    for used in finished.used if revising else ():
        revision = await attempts.ask("revise", partial(learners.reviser.revise, used.draft, run, analysis))
        lessons.revisions += [(used, revision)] if revision is not None else []
    lessons.drafts = [_of_run(draft, finished) for draft in lessons.drafts]
    return lessons


def _of_run(draft: Draft, finished: RunToLearnFrom) -> Draft:
    """Returns the draft with what is known of the run as a whole."""
    domain = clean(finished.tags[0], 100) if finished.tags else ""
    return replace(
        draft,
        domain=draft.domain or domain,
        query_kind=query_kind(finished.run.task),
        success_score=finished.success_score,
        duration_ms=duration_ms(finished.run.tool_traces),
    )


def _supplied_draft(run: StoredRun, record: Mapping[str, object]) -> Draft:
    when = clean(str(record["semantic_description"]), 240) or _when(run)
    return Draft("script", "run", ProcedureData.model_construct(None, **record), when)


def _lesson(run: StoredRun, analysis: Analysis) -> list[Draft]:
    """Returns the draft of the fix or of the failure lesson that the analyst found, if any."""
    if analysis.lesson is None:
        return []
    kind: Literal["script", "failure_lesson"] = "script" if analysis.kind == "learned_fix" else "failure_lesson"
    failure, calls = analysis.subject, run.calls
    about = [] if failure is None else [calls[failure.failed[-1] if failure.succeeded is None else failure.succeeded]]
    return [Draft(kind, analysis.origin, analysis.lesson, _when(run), task_type=clean(task_type(about), 200))]


def _when(run: StoredRun) -> str:
    return trigger(run.task, run.calls, "abstract")
