"""The learners that ask a language model: it explains failures, abstracts successes, revises what did not help.

Each falls back on the rule-based learner whenever the model has no usable answer: it is down, its answer does not have
the form asked for, the day's tokens are used up, or the answer follows an instruction in a tool's output.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from prometheus_client import Counter
from pydantic import JsonValue, ValidationError

from retrieval.errors import ModelError
from retrieval.ports import Answer, Model
from retrieval.tables.kinds import AbstractionLevel, LlmPurpose
from writer.analysis.calls import StoredRun
from writer.procedures.llm.answers import Lesson, Revision, Script, instructions_in, storable, texts_in
from writer.procedures.llm.injection import follows_injection, injected_words
from writer.procedures.llm.prompts import ABSTRACT, ANALYSE, LEVELS, REVISE
from writer.procedures.llm.run_digest import RunDigest, digest_of, evidence
from writer.procedures.llm.token_budget import Account
from writer.procedures.ports import Abstractor, Analysis, Analyst, Draft, Learners, Reviser
from writer.profiles import Profile
from writer.run import ProcedureData, ScriptData

FALLBACKS = Counter(
    "casebank_llm_fallbacks_total", "Runs that a language model was to read and the rules had to", ["purpose", "why"]
)


@dataclass(frozen=True, slots=True)
class _Reader:
    """A model that reads runs; an answer that follows an injected instruction is discarded."""

    model: Model
    purpose: LlmPurpose

    async def ask(
        self,
        instructions: str,
        run: RunDigest,
        more: dict[str, JsonValue],
        form: type[Answer],
        trusted: Sequence[str] = (),
    ) -> Answer | None:
        """Returns the model's answer, or None where there is none that may be used.

        Raises:
            UserErased: the user was erased meanwhile.
            DatabaseUnavailable: the call could not be written down.
        """
        try:
            answer = (await self.model.ask(instructions, {**run.as_json(), **more}, form)).answer
        except ModelError as error:
            FALLBACKS.labels(self.purpose, error.why).inc()
            return None
        shown = answer.model_dump(mode="json")
        if follows_injection(injected_words(run, trusted), instructions_in(shown), texts_in(shown)):
            FALLBACKS.labels(self.purpose, "planted").inc()
            return None
        try:
            return form.model_validate(storable(shown))
        except ValidationError:  # a field is empty now that what must not be stored is taken out
            FALLBACKS.labels(self.purpose, "empty").inc()
            return None


@dataclass(frozen=True, slots=True)
class LlmAnalyst:
    """Asks a model what went wrong, with what the rules found as evidence."""

    model: Model
    by_rule: Analyst

    async def analyse(self, run: StoredRun, level: AbstractionLevel | None = None) -> Analysis:
        """Returns what the run teaches, by the model or else by the rules; see the port."""
        found = await self.by_rule.analyse(run, level)
        if not run.tool_traces and not run.turns:
            return found
        trusted = [] if found.lesson is None else texts_in(found.lesson.model_dump(mode="json"))
        reader, more = _Reader(self.model, "analyse"), {"evidence": evidence(found)}
        answer = await reader.ask(ANALYSE, digest_of(run, found), more, Lesson, trusted)
        return found if answer is None else _analysis(answer, found)


def _analysis(answer: Lesson, found: Analysis) -> Analysis:
    if answer.status == "no_failure_detected":
        return replace(found, kind=None, lesson=None, subject=None, origin="llm")
    kind: Literal["learned_fix", "failure_lesson"] = (
        "learned_fix" if answer.status == "procedure_learned" else "failure_lesson"
    )
    return replace(
        found, kind=kind, lesson=answer.data, subject=found.subject if found.kind == kind else None, origin="llm"
    )


@dataclass(frozen=True, slots=True)
class LlmAbstractor:
    """Asks a model for the script of a successful run."""

    model: Model
    by_rule: Abstractor

    async def abstract(self, run: StoredRun, level: AbstractionLevel) -> Draft | None:
        """Returns the script, by the model or else by the rules; see the port."""
        reader = _Reader(self.model, "abstract")
        answer = await reader.ask(f"{ABSTRACT}{LEVELS[level]}", digest_of(run, Analysis()), {}, Script)
        if answer is None:
            return await self.by_rule.abstract(run, level)
        if answer.data is None:
            return None
        return Draft("script", "llm", answer.data, answer.trigger, answer.task_type, answer.domain, level)


@dataclass(frozen=True, slots=True)
class LlmReviser:
    """Asks a model what to change of a procedure that did not help."""

    model: Model
    by_rule: Reviser

    async def revise(self, used: Draft, run: StoredRun, analysis: Analysis) -> Draft | None:
        """Returns the revision, by the model or else by the rules; see the port."""
        before = used.record.model_dump(mode="json")
        more: dict[str, JsonValue] = {"used": before, "analysis": analysis.wrapped(), "evidence": evidence(analysis)}
        reader, form = _Reader(self.model, "revise"), _revision_of(used.record)
        answer = await reader.ask(REVISE, digest_of(run, analysis), more, form, [*texts_in(before), used.trigger])
        if answer is None:
            return await self.by_rule.revise(used, run, analysis)
        if answer.data is None:
            return None
        return replace(used, kind="revision", origin="llm", record=answer.data, trigger=answer.trigger)


def _revision_of(record: ProcedureData | ScriptData) -> type[Revision[ProcedureData]] | type[Revision[ScriptData]]:
    return Revision[ProcedureData] if isinstance(record, ProcedureData) else Revision[ScriptData]


@dataclass(frozen=True, slots=True)
class LlmLearners:
    """Makes the learners of a profile, which ask the model on its token budget and fall back on the rules."""

    model: Model
    account: Account
    by_rule: Learners

    def __call__(self, profile: Profile) -> Learners:
        """Returns the profile's learners."""
        asked = partial(self.account.model, self.model, profile)
        return Learners(
            analyst=LlmAnalyst(asked("analyse"), self.by_rule.analyst),
            abstractor=LlmAbstractor(asked("abstract"), self.by_rule.abstractor),
            reviser=LlmReviser(asked("revise"), self.by_rule.reviser),
        )
