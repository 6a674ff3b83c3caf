"""The body of a retain request: a finished run; all of its fields are checked here."""

from contextlib import suppress
from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)

from retrieval.tables.cases import cases
from retrieval.tables.columns import fits
from retrieval.tables.kinds import CaseKind, RewardSource, RunOutcome
from writer.messages import Conversation, tool_traces
from writer.storable import Payload, line, parsed, storable

Reward = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False), fits(cases.c.reward)]
"""A reward, 0 to 1; only numbers are accepted, because ``true`` and ``"0.5"`` are mistakes of the caller."""


def _has_own_address(agent: str) -> str:
    if agent.endswith(("/statistics", "/usage")):
        raise ValueError("must not end in /statistics or /usage: the address of its profile would be that of numbers")
    if agent in {".", ".."}:
        raise ValueError("must not be . or ..: clients remove these from the address of its profile")
    return agent


AgentKey = Annotated[
    str,
    Field(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$"),
    AfterValidator(storable),
    AfterValidator(_has_own_address),
]
"""The name of an agent, 1 to 200 characters; without control characters, because paths and terminals show it.

It ends in neither ``/statistics`` nor ``/usage``, which follow it in the addresses of a profile's numbers, and is not
``.`` or ``..``.
"""
LONGEST_TASK = 20_000
"""Maximum characters of a task as the backend sends it; removing secrets may make a task longer."""
TaskText = line(LONGEST_TASK, blank=False)
_SEGMENT = r"\.*[^./\x00-\x1f\x7f][^/\x00-\x1f\x7f]*"
SessionName = Annotated[str, Field(min_length=1, max_length=200, pattern=f"^{_SEGMENT}(/{_SEGMENT})*$")]
"""The name of a session, 1 to 200 characters.

It is part of a URL's path: no control characters, and no part between slashes that is empty or only dots.
"""
Tag = line(100)
ToolName = line(200)
KindName = line(200)


class Strict(BaseModel):
    """A model that refuses unknown fields."""

    model_config = ConfigDict(extra="forbid")


def _of_a_call(given: object, validated: ValidatorFunctionWrapHandler) -> object:
    """Returns the object of arguments that are JSON in a text, as models write them; other arguments as given."""
    if isinstance(given, str) and given.lstrip().startswith("{"):
        with suppress(ValueError, RecursionError):  # no JSON, too deep, or a lone surrogate: it stays a text
            return validated(parsed(given))
    return validated(given)


AsArguments = WrapValidator(_of_a_call)
"""A validator that parses the arguments of a call if they are JSON in a text."""


class ToolTrace(Strict):
    """One call of a tool."""

    tool: ToolName  # type: ignore[valid-type]
    input: Annotated[Payload, AsArguments] = None
    output: Payload = None
    status: Literal["ok", "error"] = "ok"
    duration_ms: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class ProcedureData(Strict):
    """The learned-procedure record: the lesson of a failure that a later call put right."""

    procedure_name: line(200)  # type: ignore[valid-type]
    semantic_description: line(5_000)  # type: ignore[valid-type]
    initial_failure_summary: line(5_000)  # type: ignore[valid-type]
    identified_root_cause: line(5_000)  # type: ignore[valid-type]
    successful_intervention: line(5_000)  # type: ignore[valid-type]
    learned_procedure_steps: list[line(2_000)] = Field(min_length=1, max_length=100)  # type: ignore[valid-type]
    critical_contextual_cues: list[line(500)] = Field(default_factory=list, max_length=100)  # type: ignore[valid-type]
    example_scenario_abstract: line(5_000)  # type: ignore[valid-type]


class ScriptData(Strict):
    """The script of a successful run: the fields of the learned-procedure record that need no failure."""

    procedure_name: line(200)  # type: ignore[valid-type]
    semantic_description: line(5_000)  # type: ignore[valid-type]
    learned_procedure_steps: list[line(2_000)] = Field(min_length=1, max_length=100)  # type: ignore[valid-type]
    critical_contextual_cues: list[line(500)] = Field(default_factory=list, max_length=100)  # type: ignore[valid-type]
    example_scenario_abstract: line(5_000)  # type: ignore[valid-type]


class PlannedScript(ScriptData):
    """The script of a successful run that brought a plan beside its calls: the steps are the calls."""

    plan: list[line(2_000)] = Field(default_factory=list, max_length=100)  # type: ignore[valid-type]


class LearnedProcedure(Strict):
    """Result of the backend's own analysis: a learned-procedure record, or that no call failed and was put right."""

    status: Literal["procedure_learned", "no_failure_detected"] = "procedure_learned"
    data: ProcedureData | None = Field(default=None, description="null with `no_failure_detected`, and only then")

    @model_validator(mode="after")
    def _has_a_record_if_learned(self) -> Self:
        if (self.data is None) != (self.status == "no_failure_detected"):
            raise ValueError("data is the record of a procedure_learned, and null with no_failure_detected")
        return self


class PlanStep(Strict):
    """A step of a plan, with the cases that it was taken from."""

    step: line(2_000)  # type: ignore[valid-type]
    reference_case_ids: list[UUID] = Field(default_factory=list, max_length=50)


OF_PROCEDURES = ("task_type", "trigger", "query_kind")
"""Names of a finished run's fields that the procedures learned from the run get."""


class FinishedRun(Strict):
    """One finished run: what was asked, what was done, and how it went."""

    agent: AgentKey
    task: TaskText  # type: ignore[valid-type]
    outcome: RunOutcome = "unknown"
    plan: list[line(2_000) | PlanStep] = Field(  # type: ignore[valid-type]
        default_factory=list,
        max_length=200,
        description="the agent's steps; left out: the calls that did not fail, of a run with a change without the "
        "look-ups before the last change that no later step needed",
    )
    files: list[line(1_000)] = Field(  # type: ignore[valid-type]
        default_factory=list, max_length=200, description="paths or addresses of files that belong to the run"
    )
    tool_traces: list[ToolTrace] = Field(default_factory=list, max_length=10_000)
    turns: Conversation = Field(default_factory=list)
    reward: Reward | None = None
    reward_source: RewardSource | None = Field(
        default=None,
        description="source of the reward; left out: the run itself (heuristic). judge and metric are for services: a "
        "user's own token is refused",
    )
    tags: list[Tag] = Field(default_factory=list, max_length=50)  # type: ignore[valid-type]
    kind: CaseKind = "task"
    parent_case_id: UUID | None = Field(
        default=None, description="case of the user that a subtask or a tool case is a part of"
    )
    retrieval_id: UUID | None = Field(
        default=None,
        description="the agent's retrieval that the run began with; one that is not known is left out, and null in the "
        "answer; one of another agent, or the id of something else, is refused",
    )
    used_case_ids: list[UUID] | None = Field(
        default=None,
        max_length=50,
        description="cases of the retrieval's slate that the agent used; []: it used no case, and no case is credited; "
        "null or left out: the cases that the plan's steps name or, if no step names one, unknown; the cases of the "
        "slate then share the credit by how similar the run is to each of them. A case that the user does not have is "
        "refused",
    )
    used_procedure_ids: list[UUID] | None = Field(
        default=None,
        max_length=50,
        description="procedures of the retrieval that the agent used; []: no procedure is credited; null: all of them",
    )
    prompt_snapshot: Payload = None
    procedure: LearnedProcedure | None = None
    task_type: KindName | None = Field(  # type: ignore[valid-type]
        default=None,
        description="kind of work of the procedures learned from the run; null: as its calls show",
    )
    trigger: line(240) | None = Field(  # type: ignore[valid-type]
        default=None, description="one sentence that says when to use them; null: made from the task"
    )
    query_kind: KindName | None = Field(  # type: ignore[valid-type]
        default=None, description="kind of request that the run answered, in any words; null: as the task's words show"
    )
    run_id: UUID | None = Field(
        default=None,
        description="run whose steps were sent while it was under way: it ends here, and the steps are its tool "
        "traces, unless the body has tool_traces; tool calls in turns do not replace them",
    )

    session_id: SessionName | None = Field(
        default=None,
        description="the agent's session that the run was a part of. Where the run brings no turns, those of the "
        "session that no run has taken yet are its turns",
    )

    @model_validator(mode="after")
    def _subtasks_have_parents(self) -> Self:
        if self.kind == "subtask" and self.parent_case_id is None:
            raise ValueError("a subtask names its run in parent_case_id")
        return self

    @model_validator(mode="after")
    def _steps_name_used_cases(self) -> Self:
        """Fills ``used_case_ids`` from the steps of the plan, if the run does not say which cases it used."""
        named = dict.fromkeys(
            each for step in self.plan if isinstance(step, PlanStep) for each in step.reference_case_ids
        )
        if named and self.used_case_ids is None:
            self.used_case_ids = list(named)
        return self

    @model_validator(mode="after")
    def _calls_in_turns(self) -> Self:
        """Fills ``tool_traces`` from the calls in the turns, if neither tool traces nor a run under way is named."""
        if not self.tool_traces and self.run_id is None and any(turn.tool_calls for turn in self.turns):
            self.tool_traces = [ToolTrace.model_validate(trace) for trace in tool_traces(self.turns)]
        return self
