"""The learners that use a language model, within the profile's token budget.

The rules answer in the model's place if the model has no usable answer: the model is down, its answer does not match
the schema, the day's tokens are used up, or the answer follows an instruction in a tool's output.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

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
from writer.procedures.ports import Analysis, AnalysisKind, Learners, ProcedureDraft
from writer.profiles import Profile
from writer.run import ProcedureData, ScriptData

FALLBACKS = Counter(
    "casebank_llm_fallbacks_total", "Runs that a language model was to read and the rules had to", ["purpose", "why"]
)


@dataclass(frozen=True, slots=True)
class LlmLearners:
    """A profile's learners that ask a language model, with the rules' answers as evidence and in its place.

    Attributes:
        model_for: returns the model that a profile uses for a purpose.
    """

    model_for: Callable[[Profile, LlmPurpose], Model]
    by_rule: Learners
    profile: Profile

    async def analyse(self, run: StoredRun, level: AbstractionLevel | None = None) -> Analysis:
        """Returns the analysis with the model's lesson, or else with the lesson of the rules; see `Learners`."""
        rules = await self.by_rule.analyse(run, level)
        if not run.tool_traces and not run.turns:
            return rules
        trusted = [] if rules.lesson is None else texts_in(rules.lesson.model_dump(mode="json"))
        digest = digest_of(run, rules)
        answer = await self._ask("analyse", ANALYSE, digest, Lesson, {"evidence": evidence(rules)}, trusted)
        if answer is None:
            return rules
        if answer.status == "no_failure_detected":
            return replace(rules, kind=None, lesson=None, subject=None, origin="llm")
        kind: AnalysisKind = "learned_fix" if answer.status == "procedure_learned" else "failure_lesson"
        subject = rules.subject if rules.kind == kind else None
        return replace(rules, kind=kind, lesson=answer.data, subject=subject, origin="llm")

    async def abstract(self, run: StoredRun, level: AbstractionLevel) -> ProcedureDraft | None:
        """Returns the model's script, or else the script of the rules; see `Learners`."""
        answer = await self._ask("abstract", f"{ABSTRACT}{LEVELS[level]}", digest_of(run, Analysis()), Script)
        if answer is None:
            return await self.by_rule.abstract(run, level)
        if answer.data is None:
            return None
        return ProcedureDraft("script", "llm", answer.data, answer.trigger, answer.task_type, answer.domain, level)

    async def revise(self, used: ProcedureDraft, run: StoredRun, analysis: Analysis) -> ProcedureDraft | None:
        """Returns the model's revision, or else the revision of the rules; see `Learners`."""
        before = used.record.model_dump(mode="json")
        more: dict[str, JsonValue] = {"used": before, "analysis": analysis.wrapped(), "evidence": evidence(analysis)}
        form: type[Revision[ProcedureData] | Revision[ScriptData]] = (
            Revision[ProcedureData] if isinstance(used.record, ProcedureData) else Revision[ScriptData]
        )
        trusted = [*texts_in(before), used.trigger]
        answer = await self._ask("revise", REVISE, digest_of(run, analysis), form, more, trusted)
        if answer is None:
            return await self.by_rule.revise(used, run, analysis)
        if answer.data is None:
            return None
        record = used.record.model_copy(update=answer.data.model_dump())  # a plan stays
        return replace(used, kind="revision", origin="llm", record=record, trigger=answer.trigger)

    async def _ask(  # noqa: PLR0913, PLR0917 - the parts of one request
        self,
        purpose: LlmPurpose,
        instructions: str,
        run: RunDigest,
        form: type[Answer],
        more: dict[str, JsonValue] | None = None,
        trusted: Sequence[str] = (),
    ) -> Answer | None:
        """Returns the model's answer as it may be stored, or None without a usable answer.

        Raises:
            DatabaseUnavailable: the call could not be added to the token account.
        """
        model = self.model_for(self.profile, purpose)
        try:
            answer = (await model.ask(instructions, {**run.as_json(), **(more or {})}, form)).answer
        except ModelError as error:
            FALLBACKS.labels(purpose, error.why).inc()
            return None
        shown = answer.model_dump(mode="json")
        if follows_injection(injected_words(run, trusted), instructions_in(shown), texts_in(shown)):
            FALLBACKS.labels(purpose, "planted").inc()
            return None
        try:
            return form.model_validate(storable(shown))
        except ValidationError:  # redaction left a required field empty
            FALLBACKS.labels(purpose, "empty").inc()
            return None
