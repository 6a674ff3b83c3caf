"""What one finished run teaches: a fix, a warning, a script, and revisions of procedures that failed it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, TypeVar
from uuid import UUID

from retrieval.errors import DatabaseUnavailable, UserErased
from retrieval.kinds import AbstractionLevel, is_trusted
from retrieval.telemetry import log
from writer.analysis.calls import StoredRun
from writer.analysis.placeholders import clean
from writer.analysis.success_score import success_score
from writer.errors import LeaseLost
from writer.procedures.analyst import RuleAnalyst
from writer.procedures.ports import Analysis, Draft, Teachers
from writer.procedures.revise import RuleReviser
from writer.procedures.script import RuleAbstractor, trigger
from writer.procedures.steps import task_type
from writer.run import ProcedureData

FAILED_BELOW = 0.5
"""A trusted reward under which a run counts as failed, whatever its outcome says."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Terms:
    """What the profile wants to be taught: scripts at this level, None for none, of runs that score no less."""

    level: AbstractionLevel | None = "hybrid"
    least_success: float = 0.7


@dataclass(frozen=True, slots=True)
class Used:
    """A version of a procedure that a run used."""

    id: UUID
    version: int
    draft: Draft


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that is over: what it was, how it was rewarded, and what it brought along.

    Attributes:
        brought: a record of row A2 that the backend learned by itself.
        used: the procedures that it said it used.
        tags: of the case; the first one is the domain.
    """

    run: StoredRun
    reward: float | None = None
    reward_source: str | None = None
    brought: dict[str, Any] | None = None
    used: Sequence[Used] = ()
    tags: Sequence[str] = ()

    @property
    def failed(self) -> bool:
        """Returns whether the run missed its goal."""
        if self.reward is not None and is_trusted(self.reward_source):
            return self.reward < FAILED_BELOW
        return self.run.outcome in {"failure", "aborted"}


@dataclass(slots=True)
class Taught:
    """New procedures, and revisions of those that were used, each beside the version it revises."""

    drafts: list[Draft] = field(default_factory=list)
    revisions: list[tuple[Used, Draft]] = field(default_factory=list)

    def triggers(self) -> list[str]:
        """Returns the trigger of each draft and then of each revision."""
        return [draft.trigger for draft in (*self.drafts, *(revision for _, revision in self.revisions))]


def by_rule() -> Teachers:
    """Returns the teachers that need no model."""
    return Teachers(RuleAnalyst(), RuleAbstractor(), RuleReviser())


async def _at_once() -> None:
    """Waits for nothing."""


async def teach(
    ended: Ended, terms: Terms, teachers: Teachers, before_each: Callable[[], Awaitable[None]] = _at_once
) -> Taught:
    """Returns what the run teaches; a teacher that fails costs its own lesson and no other.

    A run that brought a record has its own lesson, and is not abstracted. ``before_each`` is awaited before a teacher
    is asked.

    Raises:
        UserErased, LeaseLost, DatabaseUnavailable: the case is no longer to be finished, or not now.
    """

    async def ask(what: str, lesson: Callable[[], Awaitable[T | None]]) -> T | None:
        await before_each()
        try:
            return await lesson()
        except (UserErased, LeaseLost, DatabaseUnavailable):
            raise
        except Exception as error:  # noqa: BLE001 - a case without a lesson is still a case
            log.warning(f"{what}.failed", error=type(error).__name__)
            return None

    run, taught = ended.run, Taught()
    revising = ended.failed and bool(ended.used)
    analysis = Analysis()
    if ended.brought is None or revising:
        analysis = await ask("analyse", partial(teachers.analyst.analyse, run)) or analysis
    if ended.brought is not None:
        taught.drafts.append(_brought(run, ended.brought))
    else:
        taught.drafts += _lesson(run, analysis)
        if terms.level is not None and success_score(run, ended.reward, ended.reward_source) >= terms.least_success:
            draft = await ask("abstract", partial(teachers.abstractor.abstract, run, terms.level))
            taught.drafts += [draft] if draft is not None else []
    for used in ended.used if revising else ():
        revision = await ask("revise", partial(teachers.reviser.revise, used.draft, run, analysis))
        taught.revisions += [(used, revision)] if revision is not None else []
    domain = clean(ended.tags[0], 100) if ended.tags else ""
    taught.drafts = [replace(draft, domain=draft.domain or domain) for draft in taught.drafts]
    return taught


def _brought(run: StoredRun, record: dict[str, Any]) -> Draft:
    when = clean(str(record["semantic_description"]), 240) or _when(run)
    return Draft("script", "run", ProcedureData.model_construct(**record), when)


def _lesson(run: StoredRun, analysis: Analysis) -> list[Draft]:
    """Returns the draft of the fix or of the warning that the analyst found, if any."""
    if analysis.lesson is None:
        return []
    kind: Literal["script", "failure_lesson"] = "script" if analysis.kind == "learned_fix" else "failure_lesson"
    told, calls = analysis.told, run.calls
    about = [] if told is None else [calls[told.failed[-1] if told.succeeded is None else told.succeeded]]
    return [Draft(kind, analysis.origin, analysis.lesson, _when(run), task_type=clean(task_type(about), 200))]


def _when(run: StoredRun) -> str:
    return trigger(run.task, run.calls, "abstract")
