"""The bodies that show and change a bank: cases, profiles, the audit."""

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from app.schemas.fields import CleanTag, CleanToolName, K, Real, RrfK, Share, Similarity, Tokens, Weight
from retrieval.tables.kinds import Abstraction, AnalystChoice, CaseKind, Rewrite, SummaryChoice, ToolKind
from writer.run import Strict


class CaseOut(BaseModel):
    """A case without its sealed payload."""

    case_id: UUID
    agent: str
    kind: CaseKind
    parent_case_id: UUID | None = Field(
        description="run that a subtask or tool case belongs to; null: the case is a run of its own"
    )
    status: str
    task: str
    plan: list[str]
    tools: list[str]
    tags: list[str]
    outcome: str
    reward: Real | None
    reward_source: str | None
    step_count: int
    error_count: int
    occurrences: int
    merged_into: UUID | None
    retrieval_id: UUID | None
    session_id: str | None = Field(description="session of the run; null: no session, or a deleted one")
    reference_case_ids: list[UUID] = Field(
        description="cases the run used; all cases of its slate where the run did not report which"
    )
    used_procedure_ids: list[UUID] | None = Field(description="procedures the run used; null: not reported")
    reuse_count: Real
    reuse_reward: Real
    attempts: int
    last_error: str | None
    created_at: datetime


class WholeCaseOut(CaseOut):
    """A case with its sealed content: prompt, tool calls, turns and learned procedure."""

    prompt_snapshot: JsonValue
    tool_traces: list[dict[str, JsonValue]]
    turns: list[dict[str, JsonValue]]
    procedure: dict[str, JsonValue] | None = Field(
        description="`status`: `procedure_learned` or `failure_lesson` with the record as `data`, or "
        "`no_failure_detected`; null: not analysed yet, or the procedure was deleted"
    )


class CasesOut(BaseModel):
    """One page of cases, the newest first."""

    cases: list[CaseOut]
    next_cursor: str | None


class CasePatch(Strict):
    """Fields of a case that a user may change."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"tags": ["ddl", "checked"]}]})

    tags: list[CleanTag] = Field(max_length=50)


class ProfilePatch(Strict):
    """Settings of a profile; fields that the body leaves out keep their value."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"window_size": 500, "k": 3}]})

    window_size: int | None = Field(default=None, ge=1, le=1_000_000)
    ttl_days: int | None = Field(default=None, ge=1, le=36_500)
    k: K | None = None
    enabled: bool | None = None
    full_text_weight: Weight | None = None
    semantic_weight: Weight | None = None
    rrf_k: RrfK | None = None
    learning: bool | None = Field(default=None, description="whether a policy is trained from this profile's log")
    explore: Share | None = Field(default=None, le=0.5, description="share of slates with a drawn place")
    canary: Share | None = Field(default=None, le=0.9, description="share that follows a policy on trial")
    contribute: bool | None = Field(
        default=None, description="whether its numbers, and no content, train its fleet; null: as the service has it"
    )
    receive: bool | None = Field(
        default=None, description="whether it is served what its fleet learned; null: as the service has it"
    )
    rewrite: Rewrite | None = Field(default=None, description="who turns a query into a search")
    analyst: AnalystChoice | None = Field(default=None, description="who explains failures and abstracts runs")
    abstraction: Abstraction | None = Field(
        default=None, description="how abstract the scripts of successful runs are; off: none is made"
    )
    least_success: Share | None = Field(default=None, description="of a run that makes a procedure")
    procedures: int | None = Field(default=None, ge=0, le=10, description="most procedures in one answer")
    procedure_similarity: Similarity | None = Field(
        default=None, description="least of trigger and query; null: the embedding model's own"
    )
    llm_tokens_per_day: Tokens | None = Field(default=None, description="null: as many as the service allows")
    tool_kinds: dict[CleanToolName, ToolKind] | None = Field(
        default=None, max_length=200, description="what calls of a tool are, whose name does not tell; replaces all"
    )
    session_ttl_days: int | None = Field(
        default=None, ge=1, le=36_500, description="how long a session stays after its last turn; null: for good"
    )
    session_summary: SummaryChoice | None = Field(
        default=None, description="who tells of a session's turns that no longer fit: rules, or a language model"
    )
    session_share: Share | None = Field(
        default=None,
        description="which part of a context's tokens the session may have; what it leaves is for the rest",
    )
    facts_share: Share | None = Field(default=None, description="likewise what is known of the user")
    procedures_share: Share | None = Field(
        default=None, description="likewise of procedures, while there are cases to show as well"
    )


class ProfileOut(BaseModel):
    """A profile: its settings and case counts."""

    agent: str
    enabled: bool
    window_size: int
    ttl_days: int | None
    k: int
    full_text_weight: Real
    semantic_weight: Real
    rrf_k: Real
    learning: bool
    explore: Real
    canary: Real
    contribute: bool | None
    receive: bool | None
    fleet_left_at: datetime | None = Field(
        description="time at which the fleet's policy stopped serving this profile, because it did worse; null: it "
        "may serve"
    )
    rewrite: Rewrite
    analyst: AnalystChoice
    abstraction: Abstraction
    least_success: Real
    procedures: int
    procedure_similarity: Real | None
    llm_tokens_per_day: int | None
    tool_kinds: dict[str, ToolKind]
    session_ttl_days: int | None
    session_summary: SummaryChoice
    session_share: Real
    facts_share: Real
    procedures_share: Real
    approximate: bool = Field(description="true: vector search uses the HNSW index; false: it compares all vectors")
    embedding_model: str | None
    cases: dict[str, int] = Field(description="number of cases by status")
    created_at: datetime


class ProfilesOut(BaseModel):
    """The profiles of a user, sorted by agent name."""

    profiles: list[ProfileOut]


class AuditEntry(BaseModel):
    """One change, and who made it."""

    id: UUID
    agent: str | None
    actor: str
    action: str
    subject_id: UUID | None
    payload: dict[str, JsonValue]
    created_at: datetime


class AuditOut(BaseModel):
    """One page of the audit, the newest first."""

    entries: list[AuditEntry]
    next_cursor: str | None
