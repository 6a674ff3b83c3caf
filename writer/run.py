"""A finished run, as a backend hands it to retain; every field is checked here and nowhere else."""

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

from retrieval.column_range import fits
from retrieval.kinds import CaseKind, RewardSource, RunOutcome
from retrieval.schema import cases

Reward = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), fits(cases.c.reward)]


def _storable(text: str) -> str:
    """Returns the text unchanged; Postgres text holds no NUL."""
    if "\x00" in text:
        raise ValueError("must not contain the NUL character")
    return text


def _encodable(value: Any) -> Any:
    """Returns the value unchanged; a lone surrogate is no character and has no UTF-8."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            _utf8(item)
        elif isinstance(item, dict):
            pending += [*item.keys(), *item.values()]
        elif isinstance(item, list):
            pending += item
    return value


def _utf8(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("must not contain lone surrogates") from error


def line(longest: int) -> Any:
    """Returns the type of a non-empty text of at most that many characters that Postgres can store."""
    return Annotated[str, Field(min_length=1, max_length=longest), AfterValidator(_storable)]


AgentKey = line(200)
TaskText = line(20_000)
Tag = line(100)
Payload = Annotated[JsonValue, AfterValidator(_encodable)]
"""Any JSON; kept sealed, so that a NUL from a tool's output is no harm."""


class Strict(BaseModel):
    """A model that refuses fields it does not know."""

    model_config = ConfigDict(extra="forbid")


class ToolTrace(Strict):
    """One call of a tool."""

    tool: line(200)  # type: ignore[valid-type]
    input: Payload = None
    output: Payload = None
    status: Literal["ok", "error"] = "ok"
    duration_ms: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class Turn(Strict):
    """One message of the conversation."""

    role: line(50)  # type: ignore[valid-type]
    content: Payload


class ProcedureData(Strict):
    """What a failure that was overcome taught (SOURCES row A2)."""

    procedure_name: line(200)  # type: ignore[valid-type]
    semantic_description: line(5_000)  # type: ignore[valid-type]
    initial_failure_summary: line(5_000)  # type: ignore[valid-type]
    identified_root_cause: line(5_000)  # type: ignore[valid-type]
    successful_intervention: line(5_000)  # type: ignore[valid-type]
    learned_procedure_steps: list[line(2_000)] = Field(min_length=1, max_length=100)  # type: ignore[valid-type]
    critical_contextual_cues: list[line(500)] = Field(default_factory=list, max_length=100)  # type: ignore[valid-type]
    example_scenario_abstract: line(5_000)  # type: ignore[valid-type]


class ScriptData(Strict):
    """How a task was done, to be done again: what of row A2 applies where nothing failed."""

    procedure_name: line(200)  # type: ignore[valid-type]
    semantic_description: line(5_000)  # type: ignore[valid-type]
    learned_procedure_steps: list[line(2_000)] = Field(min_length=1, max_length=100)  # type: ignore[valid-type]
    critical_contextual_cues: list[line(500)] = Field(default_factory=list, max_length=100)  # type: ignore[valid-type]
    example_scenario_abstract: line(5_000)  # type: ignore[valid-type]


class LearnedProcedure(Strict):
    """A learned procedure in its wrapping (SOURCES row A2)."""

    status: Literal["procedure_learned"] = "procedure_learned"
    data: ProcedureData


class FinishedRun(Strict):
    """One finished run: what was asked, what was done, and how it went."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "agent": "db-operator",
                    "task": "Add a last_name column to the users table",
                    "plan": ["ALTER TABLE with the column's data type", "check information_schema.columns"],
                    "tool_traces": [
                        {
                            "tool": "sql",
                            "input": {"statement": "ALTER TABLE users ADD COLUMN last_name;"},
                            "output": 'syntax error at or near ";"',
                            "status": "error",
                            "duration_ms": 3,
                        },
                        {
                            "tool": "sql",
                            "input": {"statement": "ALTER TABLE users ADD COLUMN last_name text;"},
                            "output": "ALTER TABLE",
                            "status": "ok",
                            "duration_ms": 9,
                        },
                    ],
                    "outcome": "success",
                    "reward": 1.0,
                    "reward_source": "metric",
                    "tags": ["ddl"],
                },
            ],
        },
    )

    agent: AgentKey  # type: ignore[valid-type]
    task: TaskText  # type: ignore[valid-type]
    outcome: RunOutcome
    plan: list[line(2_000)] = Field(default_factory=list, max_length=200)  # type: ignore[valid-type]
    tool_traces: list[ToolTrace] = Field(default_factory=list, max_length=10_000)
    turns: list[Turn] = Field(default_factory=list, max_length=10_000)
    reward: Reward | None = None
    reward_source: RewardSource | None = None
    tags: list[Tag] = Field(default_factory=list, max_length=50)  # type: ignore[valid-type]
    kind: CaseKind = "task"
    parent_case_id: UUID | None = None
    retrieval_id: UUID | None = None
    used_case_ids: list[UUID] | None = Field(default=None, max_length=50)
    used_procedure_ids: list[UUID] | None = Field(default=None, max_length=50)
    prompt_snapshot: Payload = None
    procedure: LearnedProcedure | None = None
