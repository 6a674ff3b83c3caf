"""The bodies of requests and answers that are not a finished run; each with an example for the documentation."""

from datetime import date, datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator

from retrieval.ports import Rewrite
from writer.run import AgentKey, Kind, Outcome, Reward, RewardSource, Strict, Tag, TaskText

K = Annotated[int, Field(ge=1, le=50)]
Weight = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]
Analyst = Literal["rules", "llm"]
Abstraction = Literal["off", "concrete", "abstract", "hybrid"]
RrfK = Annotated[float, Field(gt=0, le=10_000, allow_inf_nan=False)]


class RedactionOut(BaseModel):
    """How many pieces of one kind were taken out."""

    kind: str
    count: int


class RetainOut(BaseModel):
    """The acknowledgement: the run is on disk."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "case_id": "01990a51-6a0e-7f3a-b1f2-7b8f5a0c1d2e",
                    "status": "pending",
                    "redactions": [{"kind": "email", "count": 1}],
                },
            ],
        },
    )

    case_id: UUID
    status: str
    redactions: list[RedactionOut]


class FiltersIn(Strict):
    """Which cases may be on the slate; an empty list lets everything through."""

    tags: list[Tag] = Field(default_factory=list, max_length=50)
    kinds: list[Kind] = Field(default_factory=list)
    outcomes: list[Outcome] = Field(default_factory=list)


class RetrieveIn(Strict):
    """What a backend asks before it acts."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"agent": "db-operator", "query": "Add an age column to the profiles table"}]},
    )

    agent: AgentKey
    query: TaskText
    k: K | None = Field(default=None, description="places on the slate; unset: the profile's (4)")
    token_budget: int = Field(default=1500, ge=0, le=100_000)
    filters: FiltersIn = Field(default_factory=FiltersIn)
    min_similarity: float | None = Field(default=None, ge=-1, le=1, allow_inf_nan=False)
    explain: bool = False
    tool_memory: bool = Field(default=False, description="tell in the context which tools fail, and what puts it right")
    full_text_weight: Weight | None = None
    semantic_weight: Weight | None = None
    rrf_k: RrfK | None = None
    rewrite: Rewrite | None = Field(
        default=None, description="who rewrites the query first; null: as the profile has it"
    )


class SlotOut(BaseModel):
    """One place of the slate."""

    case_id: UUID
    kind: str
    task: str
    plan: list[str]
    tags: list[str]
    outcome: str
    reward: float | None
    similarity: float | None = Field(description="cosine, -1 to 1; null without vectors")
    semantic_rank: int | None
    keyword_rank: int | None
    rrf: float
    q_value: float | None = Field(description="null until a trained policy serves")
    propensity: float
    why: str
    explain: dict[str, float | None] | None = Field(default=None, description="every term of the order, on request")


class ToldProcedureOut(BaseModel):
    """A procedure that may guide the task; name its id in ``used_procedure_ids`` of the run that used it."""

    id: UUID
    version: int
    kind: Literal["script", "failure_lesson", "revision"]
    procedure_name: str
    trigger: str
    task_type: str
    domain: str
    steps: list[str]
    similarity: float | None = Field(description="cosine of trigger and task; null where words alone found it")
    why: str
    uses: float
    use_reward: float = Field(description="sum over uses")
    occurrences: int = Field(description="how many runs say the same")


class ThresholdOut(BaseModel):
    """From which similarity on a procedure is told."""

    similarity: float
    origin: Literal["measured", "profile", "request", "source"] = Field(
        description="measured for the embedding model, set by the profile or the request, or the default for a model "
        "that could not be measured"
    )
    right: float | None = Field(description="share of the calibration's pairs that it tells right; null: not measured")


class RetrieveOut(BaseModel):
    """The slate, the text for the prompt, and what is needed to judge both later."""

    retrieval_id: UUID
    cases: list[SlotOut]
    procedures: list[ToldProcedureOut]
    procedure_threshold: ThresholdOut | None = Field(description="null where the profile has no procedures to tell")
    memory_context: str
    tokens: int
    policy_version: str
    mode: Literal["hybrid", "keyword", "off", "empty"]
    degraded: list[str]
    rewritten: str | None = Field(description="what was searched for in place of the query; null: the query itself")
    why_empty: str | None = Field(description="why there is no case; null where there is one")


class FeedbackIn(Strict):
    """A reward for one retrieval or one case, at any later time."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"case_id": "01990a51-6a0e-7f3a-b1f2-7b8f5a0c1d2e", "thumb": "up", "source": "user"}],
        },
    )

    retrieval_id: UUID | None = None
    case_id: UUID | None = None
    reward: Reward | None = None
    thumb: Literal["up", "down"] | None = None
    source: RewardSource = "user"

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        if (self.retrieval_id is None) == (self.case_id is None):
            raise ValueError("name either retrieval_id or case_id")
        if (self.reward is None) == (self.thumb is None):
            raise ValueError("give either reward or thumb")
        return self

    @property
    def value(self) -> float:
        """Returns the reward, 0 to 1; a thumb is 1 or 0."""
        return self.reward if self.reward is not None else float(self.thumb == "up")


class FeedbackOut(BaseModel):
    """The reward that now counts for the subject."""

    reward: float
    source: RewardSource


class CaseOut(BaseModel):
    """A case without its sealed payload."""

    case_id: UUID
    agent: str
    kind: str
    parent_case_id: UUID | None = Field(description="of a subtask or a tool case: the run it belongs to")
    status: str
    task: str
    plan: list[str]
    tools: list[str]
    tags: list[str]
    outcome: str
    reward: float | None
    reward_source: str | None
    step_count: int
    error_count: int
    occurrences: int
    merged_into: UUID | None
    retrieval_id: UUID | None
    reference_case_ids: list[UUID] = Field(description="the cases that were retrieved and used")
    used_procedure_ids: list[UUID] | None = Field(description="the procedures that were used; null: nobody said")
    reuse_count: float
    reuse_reward: float
    attempts: int
    last_error: str | None
    created_at: datetime


class WholeCaseOut(CaseOut):
    """A case with what was sealed."""

    prompt_snapshot: Any
    tool_traces: list[dict[str, Any]]
    turns: list[dict[str, Any]]
    procedure: dict[str, Any] | None


class CasesOut(BaseModel):
    """One page of cases, the newest first."""

    cases: list[CaseOut]
    next_cursor: str | None


class ToolOut(BaseModel):
    """What a tool did in all runs of an agent."""

    tool: str
    calls: int
    errors: int = Field(description="calls that failed, by their status or by what they answered")
    error_rate: float
    error_rate_interval: tuple[float, float] = Field(description="95 %, Wilson's; calls are taken for independent")
    cases: int = Field(description="runs that called it")
    mean_duration_ms: float | None = Field(description="over the runs that told how long every call took")
    last_used_at: datetime


class ToolsOut(BaseModel):
    """The tools of an agent, the one with most calls first."""

    tools: list[ToolOut]


class FormOut(BaseModel):
    """Arguments that worked, with placeholders for values, and in how many runs."""

    form: str
    runs: int


class FixOut(BaseModel):
    """What put a failure right, and how often."""

    fix: str
    count: int


class ToolFailureOut(BaseModel):
    """One cause of failures: how often it came, what put it right, and how often nothing did.

    An empty answer counts where the same question in another spelling then found something.
    """

    cause: str
    count: int
    fixes: list[FixOut]
    unresolved: int


class ToolMemoryOut(ToolOut):
    """All that is known of a tool; nothing of it holds a value of an argument or a word of an answer."""

    arguments: list[FormOut] = Field(description="that worked, the most frequent first")
    failures: list[ToolFailureOut] = Field(description="the most frequent first")


class CasePatch(Strict):
    """What may be changed of a case by hand."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"tags": ["ddl", "checked"]}]})

    tags: list[Tag] = Field(max_length=50)


class ProfilePatch(Strict):
    """The settings of a profile; what is left out stays as it is."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"window_size": 500, "k": 3}]})

    window_size: int | None = Field(default=None, ge=1, le=1_000_000)
    ttl_days: int | None = Field(default=None, ge=1, le=36_500)
    k: K | None = None
    enabled: bool | None = None
    full_text_weight: Weight | None = None
    semantic_weight: Weight | None = None
    rrf_k: RrfK | None = None
    learning: bool | None = Field(default=None, description="whether a policy is trained from this profile's log")
    explore: float | None = Field(default=None, ge=0, le=0.5, description="share of slates with a drawn place")
    canary: float | None = Field(default=None, ge=0, le=0.9, description="share that follows a policy on trial")
    share_prior: bool | None = Field(default=None, description="whether its numbers may train the shared prior")
    rewrite: Rewrite | None = Field(default=None, description="who turns a query into a search")
    analyst: Analyst | None = Field(default=None, description="who explains failures and abstracts runs")
    abstraction: Abstraction | None = Field(
        default=None, description="how abstract the scripts of successful runs are; off: none is made"
    )
    least_success: float | None = Field(default=None, ge=0, le=1, description="of a run that makes a procedure")
    procedures: int | None = Field(default=None, ge=0, le=10, description="most procedures in one answer")
    procedure_similarity: float | None = Field(
        default=None, ge=-1, le=1, description="least of trigger and query; null: the embedding model's own"
    )
    llm_tokens_per_day: int | None = Field(default=None, ge=0, description="null: as many as the service allows")


class ProfileOut(BaseModel):
    """A profile: its settings and its numbers."""

    agent: str
    enabled: bool
    window_size: int
    ttl_days: int | None
    k: int
    full_text_weight: float
    semantic_weight: float
    rrf_k: float
    learning: bool
    explore: float
    canary: float
    share_prior: bool
    rewrite: Rewrite
    analyst: Analyst
    abstraction: Abstraction
    least_success: float
    procedures: int
    procedure_similarity: float | None
    llm_tokens_per_day: int | None
    approximate: bool = Field(description="whether vectors are searched through the HNSW index")
    embedding_model: str | None
    cases: dict[str, int] = Field(description="how many cases there are of each status")
    created_at: datetime


class RewriteIn(Strict):
    """What a user said, to be turned into a search."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"agent": "db-operator", "query": "Hi, could you add an age column? Thanks!", "rewrite": "rules"}
            ]
        },
    )

    agent: AgentKey
    query: TaskText
    rewrite: Rewrite | None = Field(default=None, description="who rewrites it; null: as the profile has it")


class RewriteOut(BaseModel):
    """What to search for, and who wrote it."""

    query: str
    rewritten_by: Rewrite = Field(description="off: nobody; it is the query, without secrets")
    degraded: list[str] = Field(description="rewriter: it was to be rewritten, and nobody could")


class UsageOut(BaseModel):
    """What one day's calls of a language model came to, of one purpose."""

    day: date
    purpose: Literal["rewrite", "analyse", "abstract", "revise"]
    calls: int
    failures: int = Field(description="calls without a usable answer")
    prompt_tokens: int
    completion_tokens: int


class UsagesOut(BaseModel):
    """What language models were asked at the profile's expense, today's first."""

    tokens_left_today: int = Field(description="until midnight UTC; negative when the last calls took more")
    usage: list[UsageOut]


class PolicyOut(BaseModel):
    """One version of a profile's learned policy, and why it has its status."""

    version: int
    status: Literal["candidate", "serving", "retired", "rolled_back", "rejected", "failed"]
    feature_version: int
    blend: float = Field(description="weight of the learned part in the order: n / (n + n0)")
    decisions: int = Field(description="rewarded decisions that it was trained on")
    metrics: dict[str, Any]
    verdict: dict[str, Any] | None = Field(description="of the gate: every number and every reason")
    prior_version: int | None
    created_at: datetime
    promoted_at: datetime | None
    retired_at: datetime | None


class PoliciesOut(BaseModel):
    """The policies of a profile, the newest first; ``serving`` is what most decisions follow."""

    serving: str
    rewarded_decisions: int = Field(description="what there is to learn from; a first candidate is trained at 100")
    policies: list[PolicyOut]


class AgentIn(Strict):
    """Names an agent."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"agent": "db-operator"}]})

    agent: AgentKey


class TrainingOut(BaseModel):
    """Whether a training was started, or one of this user's waits or runs already."""

    status: Literal["started", "running"]


class RollbackOut(BaseModel):
    """The version that serves no more; the untrained default goes on."""

    version: int


class ProcedureSearchIn(Strict):
    """Which procedures to look for; a trigger, or attributes, or both."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"agent": "db-operator", "trigger": "Add a column to a table"}]},
    )

    agent: AgentKey
    trigger: TaskText | None = Field(default=None, description="the task, or when the procedure should be used")
    task_type: Tag | None = None
    domain: Tag | None = None
    tags: list[Tag] = Field(default_factory=list, max_length=50, description="of a run that says so")
    min_similarity: float | None = Field(
        default=None, ge=-1, le=1, allow_inf_nan=False, description="in place of the threshold"
    )
    limit: K = 10

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.trigger is None and self.task_type is None and self.domain is None and not self.tags:
            raise ValueError("name a trigger, a task_type, a domain or tags")
        return self


class ProcedureSearchOut(BaseModel):
    """The procedures found, the best first."""

    procedures: list[ToldProcedureOut]
    threshold: ThresholdOut
    degraded: list[str]


class ProcedureOut(BaseModel):
    """One version of a procedure."""

    id: UUID
    version: int
    agent: str
    kind: Literal["script", "failure_lesson", "revision"]
    origin: Literal["run", "rules", "llm"]
    level: Literal["concrete", "abstract", "hybrid"] | None = Field(description="null: learned from a failure")
    status: Literal["active", "superseded", "retired", "rolled_back"]
    pinned: bool
    parent_version: int | None
    task_type: str
    trigger: str
    domain: str
    record: dict[str, Any] = Field(description="procedure_name, semantic_description, learned_procedure_steps, …")
    case_id: UUID | None = Field(description="the run whose words it is made of; null once that was pruned")
    source_case_ids: list[UUID]
    occurrences: int
    uses: float
    use_reward: float
    last_used_at: datetime | None
    created_at: datetime

    @classmethod
    def of(cls, row: Any) -> Self:
        """Returns the version in a row of the registry."""
        columns = dict(row._mapping)  # noqa: SLF001 - SQLAlchemy's own
        return cls(agent=columns.pop("agent_key"), **columns)


class ProceduresOut(BaseModel):
    """One page of procedures, the newest first."""

    procedures: list[ProcedureOut]
    next_cursor: str | None


class VersionsOut(BaseModel):
    """Every version of a procedure, the newest first."""

    versions: list[ProcedureOut]


class FieldChangeOut(BaseModel):
    """A field that differs between two versions."""

    field: str
    before: Any
    after: Any


class StepChangeOut(BaseModel):
    """A run of steps that differs; ``place`` is 1-based, in the earlier version."""

    change: Literal["added", "removed", "changed"]
    place: int
    before: list[str]
    after: list[str]


class ChangesOut(BaseModel):
    """Everything in which two versions differ."""

    fields: list[FieldChangeOut]
    steps: list[StepChangeOut]


class DifferenceOut(BaseModel):
    """What the later of two versions changed of the earlier one."""

    before: int
    after: int
    changes: ChangesOut


class PinIn(Strict):
    """Which version to pin, or to let go of."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"version": 1, "pinned": True}]})

    version: int = Field(ge=1, le=2**31 - 1)
    pinned: bool = True


class AuditEntry(BaseModel):
    """One change, and who made it."""

    id: UUID
    agent: str | None
    actor: str
    action: str
    subject_id: UUID | None
    payload: dict[str, Any]
    created_at: datetime


class AuditOut(BaseModel):
    """One page of the audit, the newest first."""

    entries: list[AuditEntry]
    next_cursor: str | None


class HybridSearchIn(Strict):
    """The body of the hosted-Postgres flow (SOURCES row A4); ``agent`` is casebank's addition."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"query": "how to add a column to a table", "agent": "db-operator"}]},
    )

    query: TaskText
    agent: AgentKey = "default"
    match_count: K | None = None


class Memory(BaseModel):
    """One memory, without vectors and internal fields."""

    id: UUID
    content: str
    plan: list[str]
    outcome: str
    reward: float | None
    tags: list[str]
