"""The bodies that show and change a bank: cases, profiles, the audit; and small requests about an agent or a user."""

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, Field, JsonValue, SkipValidation

from app.schemas.fields import CleanTag, CleanToolName, K, Real, Share, Similarity, Tokens
from app.schemas.responses import RowOut
from retrieval.tables.kinds import (
    Abstraction,
    AnalystChoice,
    CaseKind,
    ReflectionStatus,
    Rewrite,
    SummaryChoice,
    ToolKind,
)
from retrieval.tables.profiles import profiles
from writer.moment import Moment
from writer.run import AgentKey, Strict


class CaseOut(RowOut):
    """A case without its sealed payload."""

    case_id: UUID = Field(validation_alias="id")
    agent: str = Field(validation_alias="agent_key")
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
    lessons: ReflectionStatus = Field(
        description="state of learning from the run; the case can be found before the worker has learned from it"
    )
    created_at: datetime
    updated_at: datetime = Field(description="last change: by the worker, feedback, a merge, a use or by hand")


class WholeCaseOut(CaseOut):
    """A case with its sealed content: prompt, tool calls, turns and learned procedure."""

    prompt_snapshot: SkipValidation[JsonValue]  # as the tool traces and turns: it takes seconds for 16 MB
    tool_traces: SkipValidation[list[dict[str, JsonValue]]]
    turns: SkipValidation[list[dict[str, JsonValue]]]
    files: list[str] = Field(description="files that the run named")
    plan_references: list[list[UUID]] = Field(
        description="cases that each step of the plan was taken from, by the run's own word; empty: no step names one"
    )
    procedure: dict[str, JsonValue] | None = Field(
        description="`status`: `procedure_learned` or `failure_lesson` with the record as `data`, or "
        "`no_failure_detected`; null: not analysed yet, or the procedure was deleted or withdrawn"
    )


class CasesOut(BaseModel):
    """One page of cases, the newest first."""

    cases: list[CaseOut]
    next_cursor: str | None


class CasePatch(Strict):
    """Fields of a case that a user may change."""

    tags: list[CleanTag] = Field(max_length=50)


class SharesPatch(Strict):
    """Largest shares of the context's tokens, 0 to 1; parts that the body leaves out keep their share."""

    session: Share | None = None
    facts: Share | None = None
    procedures: Share | None = Field(default=None, description="share beside cases; without cases there is no limit")


class ProfilePatch(Strict):
    """Settings of a profile; fields that the body leaves out keep their value."""

    window_size: int | None = Field(default=None, ge=1, le=1_000_000)
    ttl_days: int | None = Field(default=None, ge=1, le=36_500)
    k: K | None = None
    enabled: bool | None = Field(
        default=None, description="false: memory is neither read nor written, unless `writing` says otherwise"
    )
    writing: bool | None = Field(
        default=None,
        description="false: no run, step, turn or fact is stored; left out: as `enabled`, if the body has it",
    )
    learning: bool | None = Field(default=None, description="true: train a policy from the log of this profile")
    explore: Share | None = Field(default=None, le=0.5, description="share of slates with a random case")
    canary: Share | None = Field(default=None, le=0.9, description="share of decisions that follow a policy on trial")
    rewrite: Rewrite | None = Field(default=None, description="rewriter of queries")
    analyst: AnalystChoice | None = Field(default=None, description="analyst of failures and author of scripts")
    abstraction: Abstraction | None = Field(
        default=None, description="abstraction of the scripts made from successful runs; off: no scripts"
    )
    procedures: int | None = Field(default=None, ge=0, le=10, description="maximum number of procedures in an answer")
    procedure_similarity: Similarity | None = Field(
        default=None,
        description="least similarity of query and trigger, or query and a run that taught it; null: the model's",
    )
    llm_tokens_per_day: Tokens | None = Field(
        default=None, description="daily limit for language models in tokens; null: the limit of the service"
    )
    tool_kinds: dict[CleanToolName, ToolKind] | None = Field(
        default=None,
        max_length=200,
        description="kinds of tools whose name does not show it; replaces the present kinds",
    )
    session_ttl_days: int | None = Field(
        default=None, ge=1, le=36_500, description="days that a session is kept after its last turn; null: no limit"
    )
    session_summary: SummaryChoice | None = Field(
        default=None, description="author of the summary of older turns: rules or a language model"
    )
    shares: SharesPatch | None = Field(default=None, description="largest shares of the context's tokens, by part")

    def columns(self) -> dict[str, object]:
        """Returns the columns of the profile that the body sets."""
        given = self.model_dump(exclude_unset=True, exclude={"shares"})
        columns = {name: value for name, value in given.items() if value is not None or profiles.c[name].nullable}
        if "enabled" in columns:
            columns.setdefault("writing", columns["enabled"])
        shares = {} if self.shares is None else self.shares.model_dump(exclude_none=True)
        return columns | {f"{part}_share": share for part, share in shares.items()}


class SharesOut(BaseModel):
    """Largest shares of the context's tokens, by part."""

    session: Real
    facts: Real
    procedures: Real


class ProfileOut(RowOut):
    """A profile: its settings and case counts."""

    agent: str = Field(validation_alias="agent_key")
    enabled: bool = Field(description="true: memory is read")
    writing: bool = Field(description="true: memory is written")
    window_size: int
    ttl_days: int | None
    k: int
    learning: bool
    explore: Real
    canary: Real
    rewrite: Rewrite
    analyst: AnalystChoice
    abstraction: Abstraction
    procedures: int
    procedure_similarity: Real | None
    llm_tokens_per_day: int | None
    tool_kinds: dict[str, ToolKind]
    session_ttl_days: int | None
    session_summary: SummaryChoice
    shares: SharesOut
    approximate: bool = Field(description="true: vector search uses the HNSW index; false: it compares all vectors")
    embedding_model: str | None
    cases: dict[str, int] = Field(description="number of cases by status")
    created_at: datetime


class ProfilesOut(BaseModel):
    """The profiles of a user, sorted by agent name."""

    profiles: list[ProfileOut]


class AuditEntry(RowOut):
    """One change, and who made it."""

    id: UUID
    agent: str | None = Field(validation_alias="agent_key")
    actor: str
    action: str
    subject_id: UUID | None
    payload: dict[str, JsonValue]
    created_at: datetime


class AuditOut(BaseModel):
    """One page of the audit, the newest first."""

    entries: list[AuditEntry]
    next_cursor: str | None


class AgentIn(Strict):
    """Names an agent."""

    agent: AgentKey


class BeginAgainIn(Strict):
    """The erasure that the caller confirms."""

    erased_at: Moment = Field(
        description="time of the erasure as the 410 response gave it; it confirms that the caller knows of the erasure"
    )
