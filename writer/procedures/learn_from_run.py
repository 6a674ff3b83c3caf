"""Learns from one finished run: a fix or a failure lesson, a script, and revisions of the procedures that it used."""

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
from writer.analysis.query_kind import query_kind, verb_of
from writer.analysis.success_score import duration_ms, success_score
from writer.errors import LeaseLost
from writer.procedures.ports import Analysis, Learners, ProcedureDraft
from writer.procedures.rules.script import planned, trigger
from writer.procedures.rules.steps import task_type
from writer.run import PlannedScript, ProcedureData

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class UsedVersion:
    """A version of a procedure that a run used, with its content as a draft."""

    id: UUID
    version: int
    draft: ProcedureDraft


@dataclass(frozen=True, slots=True)
class RunToLearnFrom:
    """A finished run with its reward and the statements of the backend about it.

    Attributes:
        supplied_record: a learned-procedure record that the backend wrote; None: it wrote none.
        no_failure: true if the backend found no failure; if so, no lesson is made of the run's calls.
        used: the versions of procedures that the backend reported as used.
        plan: the plan that the backend gave beside the run's calls; empty: it gave none.
        task_type, trigger, query_kind: task type, trigger and kind of request that the backend gave for the run's
            procedures; None: they are made from the run.
    """

    run: StoredRun
    reward: float | None = None
    reward_source: str | None = None
    supplied_record: Mapping[str, object] | None = None
    no_failure: bool = False
    used: Sequence[UsedVersion] = ()
    tags: Sequence[str] = ()
    plan: Sequence[str] = ()
    task_type: str | None = None
    trigger: str | None = None
    query_kind: str | None = None

    @property
    def failed(self) -> bool:
        """Returns whether the run failed, by its outcome or by a trusted reward."""
        return has_failed(self.run.outcome, self.reward, self.reward_source)

    @property
    def success_score(self) -> float:
        """Returns the success score of the run, 0 to 1."""
        return success_score(self.run, self.reward, self.reward_source)


@dataclass(slots=True)
class Lessons:
    """Lessons of a run: new procedures, and revisions of used procedures, each with the version that it revises."""

    drafts: list[ProcedureDraft] = field(default_factory=list)
    revisions: list[tuple[UsedVersion, ProcedureDraft]] = field(default_factory=list)

    def triggers(self) -> list[str]:
        """Returns the trigger of each new procedure, and then of each revision."""
        return [draft.trigger for draft in (*self.drafts, *(revision for _, revision in self.revisions))]


async def learn_from_run(
    finished: RunToLearnFrom,
    learners: Learners,
    level: AbstractionLevel | None = "hybrid",
    least_success: float = 0.7,
    before_each: Callable[[], Awaitable[None]] | None = None,
) -> Lessons:
    """Returns the lessons of a run; an error of a learner is logged, and only its own lesson is missing.

    The lesson of a run with a supplied record is that record, and no script is made of it. If the backend says that the
    run had no failure, there is no lesson of a failure. An aborted run has no lessons.

    A script is learned at this level of abstraction, if it is not None, of a run with at least this success score, 0 to
    1. ``before_each`` is awaited before each call of a learner.

    Raises:
        UserErased, LeaseLost, DatabaseUnavailable: the case must not be finished, or cannot be finished now.
    """
    attempt = partial(_attempt, before_each)
    run, lessons = finished.run, Lessons()
    if run.outcome == "aborted":
        return lessons
    revising = finished.failed and bool(finished.used)
    analysis = Analysis()
    if revising or (finished.supplied_record is None and not finished.no_failure):
        analysis = await attempt("analyse", partial(learners.analyse, run, level)) or analysis
    if finished.supplied_record is not None:
        supplied = ProcedureData.model_construct(None, **finished.supplied_record)
        when = clean(str(finished.supplied_record["semantic_description"]), 240)
        when = when or trigger(run.task, run.calls, "abstract")
        lessons.drafts.append(ProcedureDraft("script", "run", supplied, when))
    else:
        if not finished.no_failure:
            lessons.drafts += _lesson(run, analysis)
        if level is not None and finished.success_score >= least_success:
            draft = await attempt("abstract", partial(learners.abstract, run, level))
            steps = planned(finished.plan, level, run.calls)
            if draft is not None and steps:
                draft = replace(draft, record=PlannedScript(**draft.record.model_dump(), plan=steps))
            lessons.drafts += [draft] if draft is not None else []
    for used in finished.used if revising else ():
        revision = await attempt("revise", partial(learners.revise, used.draft, run, analysis))
        lessons.revisions += [(used, revision)] if revision is not None else []
    domain = clean(finished.tags[0], 100) if finished.tags else ""
    lessons.drafts = [
        replace(
            draft,
            task_type=clean(finished.task_type or draft.task_type or verb_of(run.task, run.plan), 200),
            trigger=clean(finished.trigger or draft.trigger, 240),
            domain=draft.domain or domain,
            query_kind=clean(finished.query_kind or query_kind(run.task), 200),
            success_score=finished.success_score,
            duration_ms=duration_ms(run.tool_traces),
        )
        for draft in lessons.drafts
    ]
    return lessons


async def _attempt(
    before_each: Callable[[], Awaitable[None]] | None, what: str, learn: Callable[[], Awaitable[T | None]]
) -> T | None:
    if before_each is not None:
        await before_each()
    try:
        return await learn()
    except (UserErased, LeaseLost, DatabaseUnavailable):
        raise
    except Exception as error:  # noqa: BLE001 - a case without a lesson is still a case
        log.warning(f"{what}.failed", error=type(error).__name__)
        return None


def _lesson(run: StoredRun, analysis: Analysis) -> list[ProcedureDraft]:
    """Returns the draft of the fix or of the failure lesson in an analysis; empty without a lesson."""
    if analysis.lesson is None:
        return []
    kind: Literal["script", "failure_lesson"] = "script" if analysis.kind == "learned_fix" else "failure_lesson"
    failure, calls = analysis.subject, run.calls
    about = [] if failure is None else [calls[failure.failed[-1] if failure.succeeded is None else failure.succeeded]]
    when = trigger(run.task, run.calls, "abstract")
    return [ProcedureDraft(kind, analysis.origin, analysis.lesson, when, task_type=clean(task_type(about), 200))]
