"""The learners that use a language model: analyst, abstractor and reviser.

Each uses the rule-based learner's answer if the model has no usable answer: the model is down, its answer does not
match the schema, the day's tokens are used up, or the answer follows an instruction in a tool's output.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

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
from writer.procedures.ports import Abstractor, Analysis, AnalysisKind, Analyst, Learners, ProcedureDraft, Reviser
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
        """Returns the model's answer as it may be stored, or None without a usable answer.

        Raises:
            DatabaseUnavailable: the call could not be added to the token account.
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
        except ValidationError:  # redaction left a required field empty
            FALLBACKS.labels(self.purpose, "empty").inc()
            return None


@dataclass(frozen=True, slots=True)
class LlmAnalyst:
    """Analyst that asks a model for the lesson of a run, with the failures found by rule as evidence."""

    model: Model
    by_rule: Analyst

    async def analyse(self, run: StoredRun, level: AbstractionLevel | None = None) -> Analysis:
        """Returns the analysis with the model's lesson, or else with the lesson of the rules; see `Analyst`."""
        rules = await self.by_rule.analyse(run, level)
        if not run.tool_traces and not run.turns:
            return rules
        trusted = [] if rules.lesson is None else texts_in(rules.lesson.model_dump(mode="json"))
        reader, more = _Reader(self.model, "analyse"), {"evidence": evidence(rules)}
        answer = await reader.ask(ANALYSE, digest_of(run, rules), more, Lesson, trusted)
        if answer is None:
            return rules
        if answer.status == "no_failure_detected":
            return replace(rules, kind=None, lesson=None, subject=None, origin="llm")
        kind: AnalysisKind = "learned_fix" if answer.status == "procedure_learned" else "failure_lesson"
        subject = rules.subject if rules.kind == kind else None
        return replace(rules, kind=kind, lesson=answer.data, subject=subject, origin="llm")


@dataclass(frozen=True, slots=True)
class LlmAbstractor:
    """Abstractor that asks a model for the script of a successful run."""

    model: Model
    by_rule: Abstractor

    async def abstract(self, run: StoredRun, level: AbstractionLevel) -> ProcedureDraft | None:
        """Returns the model's script, or else the script of the rules; see `Abstractor`."""
        reader = _Reader(self.model, "abstract")
        answer = await reader.ask(f"{ABSTRACT}{LEVELS[level]}", digest_of(run, Analysis()), {}, Script)
        if answer is None:
            return await self.by_rule.abstract(run, level)
        if answer.data is None:
            return None
        return ProcedureDraft("script", "llm", answer.data, answer.trigger, answer.task_type, answer.domain, level)


@dataclass(frozen=True, slots=True)
class LlmReviser:
    """Reviser that asks a model for changes of a procedure that a failed run used."""

    model: Model
    by_rule: Reviser

    async def revise(self, used: ProcedureDraft, run: StoredRun, analysis: Analysis) -> ProcedureDraft | None:
        """Returns the model's revision, or else the revision of the rules; see `Reviser`."""
        before = used.record.model_dump(mode="json")
        more: dict[str, JsonValue] = {"used": before, "analysis": analysis.wrapped(), "evidence": evidence(analysis)}
        form: type[Revision[ProcedureData] | Revision[ScriptData]] = (
            Revision[ProcedureData] if isinstance(used.record, ProcedureData) else Revision[ScriptData]
        )
        reader, trusted = _Reader(self.model, "revise"), [*texts_in(before), used.trigger]
        answer = await reader.ask(REVISE, digest_of(run, analysis), more, form, trusted)
        if answer is None:
            return await self.by_rule.revise(used, run, analysis)
        if answer.data is None:
            return None
        record = used.record.model_copy(update=answer.data.model_dump())  # a plan stays
        return replace(used, kind="revision", origin="llm", record=record, trigger=answer.trigger)


@dataclass(frozen=True, slots=True)
class LlmLearners:
    """Factory of a profile's learners, which use the model within the token budget and fall back on the rules."""

    model: Model
    account: Account
    by_rule: Learners

    def __call__(self, profile: Profile) -> Learners:
        """Returns the profile's learners."""
        metered = partial(self.account.model, self.model, profile)
        return Learners(
            analyst=LlmAnalyst(metered("analyse"), self.by_rule.analyst),
            abstractor=LlmAbstractor(metered("abstract"), self.by_rule.abstractor),
            reviser=LlmReviser(metered("revise"), self.by_rule.reviser),
        )
