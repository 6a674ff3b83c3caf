"""Responses of the service, as in its OpenAPI document; a test of the service compares the two."""

from typing import Any, Literal, NotRequired, TypedDict

CaseKind = Literal["task", "subtask", "tool"]
ProcedureKind = Literal["script", "failure_lesson", "revision"]
RewardSource = Literal["heuristic", "user", "judge", "metric"]
MemoryKind = Literal["turn", "fact", "knowledge"]
FactKind = Literal["goal", "preference", "event", "fact"]
FactOrigin = Literal["turn", "run", "hand"]
Speaker = Literal["user", "assistant", "tool"]
Outcome = Literal["success", "failure", "partial", "aborted", "unknown"]


class Slot(TypedDict):
    """One place of a slate: a case, and why it is there."""

    case_id: str
    kind: CaseKind
    task: str
    plan: list[str]
    tags: list[str]
    outcome: str
    reward: float | None
    similarity: float | None
    semantic_rank: int | None
    keyword_rank: int | None
    rrf: float
    q_value: float | None
    propensity: float
    why: str
    explain: NotRequired[dict[str, Any] | None]


class ProcedureTold(TypedDict):
    """A procedure that was told with a slate."""

    id: str
    version: int
    kind: ProcedureKind
    procedure_name: str
    trigger: str
    task_type: str
    domain: str
    query_kind: str | None
    success_score: float | None
    duration_ms: float | None
    steps: list[str]
    similarity: float | None
    why: str
    uses: float
    use_reward: float
    occurrences: int
    alternative_to: str | None


class Other(TypedDict):
    """A run that the text tells beside the slate: one that failed near the task, or another way to do it."""

    case_id: str
    task: str
    plan: list[str]
    outcome: str
    reward: float | None


class Threshold(TypedDict):
    """The least similarity at which a procedure is returned, and its origin."""

    similarity: float
    origin: Literal["measured", "profile", "request", "source"]
    right: float | None


class Part(TypedDict):
    """Tokens of one part of ``memory_context``."""

    part: Literal["session", "user", "procedures", "cases", "others"]
    tokens: int
    shown: int
    left_out: int


class Source(TypedDict, total=False):
    """The source of a memory: session and number of a turn, or id of a fact or knowledge; other fields are null."""

    session_id: str | None
    turn_number: int | None
    role: str | None
    said_at: str | None
    fact_id: str | None
    fact_kind: str | None
    said_by: str | None
    valid_from: str | None
    valid_to: str | None
    knowledge_id: str | None
    category: str | None
    type: str | None
    shared: bool | None


class MemoryFound(TypedDict):
    """A turn, a fact or an entry of knowledge, as it was said."""

    kind: MemoryKind
    text: str
    rank: int
    relevance: float
    similarity: float | None
    source: Source


class SessionFound(TypedDict):
    """A session that the query is about."""

    session_id: str
    relevance: float


class Recalled(TypedDict):
    """Turns, facts and knowledge that match the query, the best first."""

    memories: list[MemoryFound]
    sessions: list[SessionFound]
    tokens: int
    left_out: int
    degraded: list[str]


class Retrieved(TypedDict):
    """Memories for a task: ``memory_context`` for the prompt, and ``retrieval_id`` for the later retain."""

    retrieval_id: str
    cases: list[Slot]
    procedures: list[ProcedureTold]
    others: list[Other]
    procedure_threshold: Threshold | None
    memory_context: str
    tokens: int
    parts: list[Part]
    policy_version: str
    mode: Literal["hybrid", "keyword", "off", "empty"]
    degraded: list[str]
    recalled: Recalled | None
    rewritten: str | None
    why_empty: str | None


class Redaction(TypedDict):
    """The number of secrets of one kind that were removed."""

    kind: str
    count: int


class Retained(TypedDict):
    """The acknowledgement of a retain: the run is on disk."""

    case_id: str
    status: str
    redactions: list[Redaction]
    retrieval_id: str | None
    warnings: NotRequired[list[str]]


class Feedback(TypedDict):
    """The rows that a reward changed."""

    reward: float
    source: RewardSource
    case_ids: list[str]
    retrieval_id: str | None
    withdrawn_procedure_ids: list[str]


Silence = Literal[
    "not_failed", "off", "unknown_failure", "never_fixed", "unsure", "told_already", "tried", "unproven", "no_room"
]


class Fix(TypedDict):
    """The calls and changes that put such a failure right in an earlier run."""

    what: str
    case_id: str
    confidence: float
    worked: int
    runs: int
    told: int
    helped: int
    dangerous: bool
    plan: list[str]
    why: str


class AdvisedPlan(TypedDict):
    """A plan of a run that went well, for a task and a failure like these."""

    plan: list[str]
    case_id: str
    likeness: float
    proven: bool
    dangerous: bool


class Advice(TypedDict):
    """Advice for a failed call: ``text`` for the message of the tool, or the reason why there are no fixes."""

    advice_id: str | None
    text: str
    fixes: list[Fix]
    plans: list[AdvisedPlan]
    why_empty: Silence | None
    stopped: int
    degraded: list[str]


class TurnsAdded(TypedDict):
    """The acknowledgement: the turns are on disk, numbered ``first`` to ``last``."""

    session_id: str
    first: int
    last: int
    turn_count: int
    redactions: list[Redaction]
    warnings: NotRequired[list[str]]


class Turn(TypedDict):
    """A turn of a session, as a message of chat completions."""

    number: int
    time: str
    role: str
    content: NotRequired[Any]
    name: NotRequired[str | None]
    tool_calls: NotRequired[list[dict[str, Any]] | None]
    tool_call_id: NotRequired[str | None]
    refusal: NotRequired[Any]
    is_error: NotRequired[bool | None]


class SummaryItem(TypedDict):
    """Something that was said in a turn that is not shown."""

    turn: int
    kind: str
    role: str
    text: str
    by: str


class Session(TypedDict):
    """A session as far as the token budget shows it: the newest turns, oldest first."""

    session_id: str
    agent: str
    turn_count: int
    last_turn_at: str
    created_at: str
    turns: list[Turn]
    summary: list[SummaryItem]
    summary_by: str
    left_out: int
    tokens: int


class Fact(TypedDict):
    """A fact about the user, with its source and the time it held."""

    fact_id: str
    agent: str
    kind: FactKind
    category: str
    text: str
    subject: str
    attribute: str
    value: str
    unit: str
    about_from: str | None
    about_to: str | None
    origin: FactOrigin
    said_by: Speaker
    session_id: str | None
    turn_number: int | None
    case_id: str | None
    told: int
    last_told_at: str
    valid_from: str
    valid_to: str | None
    superseded_by: str | None
    created_at: str


class Facts(TypedDict):
    """One page of facts, the newest first."""

    facts: list[Fact]
    next_cursor: str | None
    why_empty: str | None


class Knowledge(TypedDict):
    """An entry of domain knowledge."""

    knowledge_id: str
    agent: str
    category: str
    type: str
    title: str
    text: str
    created_at: str
    updated_at: str


class KnowledgePage(TypedDict):
    """One page of knowledge, the newest first."""

    knowledge: list[Knowledge]
    next_cursor: str | None


class Case(TypedDict):
    """A case without its sealed payload."""

    case_id: str
    agent: str
    kind: CaseKind
    parent_case_id: str | None
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
    merged_into: str | None
    retrieval_id: str | None
    session_id: str | None
    reference_case_ids: list[str]
    used_procedure_ids: list[str] | None
    reuse_count: float
    reuse_reward: float
    attempts: int
    last_error: str | None
    lessons: Literal["pending", "ready", "dead"]
    created_at: str
    updated_at: str


class WholeCase(Case):
    """A case with its sealed content: prompt, tool calls, turns and learned procedure."""

    prompt_snapshot: Any
    tool_traces: list[dict[str, Any]]
    turns: list[dict[str, Any]]
    files: list[str]
    plan_references: list[list[str]]
    procedure: dict[str, Any] | None


class Cases(TypedDict):
    """One page of cases, the newest first."""

    cases: list[Case]
    next_cursor: str | None
