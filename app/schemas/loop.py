"""The bodies of the loop: retain, retrieve, feedback; each with an example for the documentation."""

from datetime import datetime
from typing import Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from app.schemas.fields import K, Real, RrfK, SearchText, Similarity, Weight
from app.schemas.recall import RecallOut
from retrieval.sections.context import PartName
from retrieval.tables.kinds import CaseKind, ProcedureKind, QueryKind, RewardSource, Rewrite, RunOutcome
from writer.run import AgentKey, Reward, SessionName, Strict, Tag


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
                    "retrieval_id": "01990a51-5f10-7c22-8d41-9c1e2a3b4c5d",
                },
            ],
        },
    )

    case_id: UUID
    status: str
    redactions: list[RedactionOut]
    retrieval_id: UUID | None = Field(
        description="the retrieval that the run is joined to; null: it named none, or one that is not known"
    )


class FiltersIn(Strict):
    """Which cases may be on the slate: those that pass every list; an empty one lets everything through."""

    tags: list[Tag] = Field(default_factory=list, max_length=50, description="the case has all of these")
    kinds: list[CaseKind] = Field(default_factory=list, description="the case is of one of these")
    outcomes: list[RunOutcome] = Field(
        default_factory=list,
        description="the run ended in one of these; runs that were aborted are found only where this names them",
    )


class RetrieveIn(Strict):
    """What a backend asks before it acts."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"agent": "db-operator", "query": "Add an age column to the profiles table"}]},
    )

    agent: AgentKey
    query: SearchText
    k: K | None = Field(default=None, description="places on the slate; unset: the profile's (4)")
    token_budget: int = Field(default=1500, ge=0, le=100_000)
    filters: FiltersIn = Field(default_factory=FiltersIn)
    min_similarity: Similarity | None = None
    explain: bool = False
    memory: bool = Field(
        default=True,
        description="false: answer without memory. No case, procedure or text is told; the decision is logged with "
        "mode `off`, so that its reward can be compared with those of answers with memory",
    )
    tool_memory: bool = Field(default=False, description="tell in the context which tools fail, and what puts it right")
    others: bool = Field(
        default=True,
        description="tell in the context, where the budget has room, runs beside the slate: at most one that failed "
        "near the task, and up to three (no more than places) that did it in other ways",
    )
    full_text_weight: Weight | None = None
    semantic_weight: Weight | None = None
    rrf_k: RrfK | None = None
    session_id: SessionName | None = Field(
        default=None,
        description="the agent's session, with which `memory_context` begins; one that is not there yet is no fault",
    )
    recall: bool = Field(
        default=False,
        description="also find turns, facts and knowledge, as `POST /v1/recall` does, for what is searched for; "
        "`recalled` has them, and `memory_context` tells them within the session's and the user's share",
    )
    rewrite: Rewrite | None = Field(
        default=None, description="who rewrites the query first; null: as the profile has it"
    )


class SlotOut(BaseModel):
    """One place of the slate."""

    case_id: UUID
    kind: CaseKind
    task: str
    plan: list[str]
    tags: list[str]
    outcome: str
    reward: Real | None
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
    kind: ProcedureKind
    procedure_name: str
    trigger: str
    task_type: str
    domain: str
    query_kind: QueryKind | None = Field(description="what kind of thing its run was asked for; null: not known")
    success_score: Real | None = Field(description="of its run, 0 to 1; null: not known")
    duration_ms: Real | None = Field(description="of the calls of its run together; null: not known")
    steps: list[str]
    similarity: float | None = Field(description="cosine of trigger and task; null where words alone found it")
    why: str
    uses: Real
    use_reward: Real = Field(description="sum over uses")
    occurrences: int = Field(description="how many runs say the same")
    alternative_to: UUID | None = Field(description="the better procedure of this answer that has the same trigger")


class OtherOut(BaseModel):
    """A run that ``memory_context`` tells beside the slate; it has no place there, and earns no credit."""

    case_id: UUID
    task: str
    plan: list[str]
    outcome: str
    reward: float | None


class ThresholdOut(BaseModel):
    """From which similarity on a procedure is told."""

    similarity: float
    origin: Literal["measured", "profile", "request", "source"] = Field(
        description="measured for the embedding model, set by the profile or the request, or the default for a model "
        "that could not be measured"
    )
    right: float | None = Field(description="share of the calibration's pairs that it tells right; null: not measured")


class PartOut(BaseModel):
    """What one kind of memory took of the token budget."""

    part: PartName
    tokens: int = Field(description="of its own lines; the frame around all of them counts in `tokens` of the answer")
    shown: int = Field(description="turns, facts and knowledge, procedures, cases, or others beside them")
    left_out: int = Field(description="those of them that there was no room for")


class RetrieveOut(BaseModel):
    """The slate, the text for the prompt, and what is needed to judge both later."""

    retrieval_id: UUID
    cases: list[SlotOut]
    procedures: list[ToldProcedureOut]
    others: list[OtherOut] = Field(description="runs beside the slate, as far as `memory_context` tells them")
    procedure_threshold: ThresholdOut | None = Field(description="null where the profile has no procedures to tell")
    memory_context: str = Field(
        description="session, what is known of the user, procedures, cases, others, in this order"
    )
    tokens: int
    parts: list[PartOut] = Field(description="what `memory_context` is made of, in its order; without what is empty")
    policy_version: str
    mode: Literal["hybrid", "keyword", "off", "empty"]
    degraded: list[str]
    recalled: RecallOut | None = Field(
        description="turns, facts and knowledge, where the request asked for `recall`; null: it did not, "
        "or memory is off",
    )
    rewritten: str | None = Field(description="what was searched for in place of the query; null: the query itself")
    why_empty: str | None = Field(
        description="why there is no case: memory is off, for the agent or for this request; there is none; none is "
        "related to the query (its similarity is below what the embedding model calls unrelated, and it shares no rare "
        "word); or none is expected to help. null where there is one"
    )


class FeedbackIn(Strict):
    """A reward for one loop, at any later time: name its retrieval, the case of its run, or both."""

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
    source: RewardSource = Field(
        default="user",
        description="judge and metric are for services: a user's own token is refused. A heuristic does not count "
        "where one of the others was given",
    )

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        if self.retrieval_id is None and self.case_id is None:
            raise ValueError("name retrieval_id or case_id")
        if (self.reward is None) == (self.thumb is None):
            raise ValueError("give either reward or thumb")
        return self

    @property
    def value(self) -> float:
        """Returns the reward, 0 to 1; a thumb is 1 or 0."""
        return self.reward if self.reward is not None else float(self.thumb == "up")


class FeedbackOut(BaseModel):
    """The reward that now counts for what was named (the run, if both were), and what else it reached."""

    reward: Real
    source: RewardSource
    case_ids: list[UUID] = Field(description="the runs that it judges: that of the case, or all of the retrieval")
    retrieval_id: UUID | None = Field(description="whose slate and procedures it credits; null: the run had none")
    withdrawn_procedure_ids: list[UUID] = Field(description="learned from these runs alone, and no longer in use")


class HybridSearchIn(Strict):
    """The body of the hosted-Postgres flow that casebank can stand in for; ``agent`` is casebank's addition."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"query": "how to add a column to a table", "agent": "db-operator"}]},
    )

    query: SearchText
    agent: AgentKey | None = Field(default=None, description="null or left out: all of the user's agents")
    match_count: K | None = Field(default=None, description="unset: as many as the agent's profile says, or 4")


class LessonOut(BaseModel):
    """What a run taught, in the wrapping of the learned-procedure record."""

    status: Literal["procedure_learned", "failure_lesson", "no_failure_detected"] | None = Field(
        description="failure_lesson: a failure that was never put right; null: calls failed, and nobody knows why, or "
        "what was learned is out of use"
    )
    data: dict[str, JsonValue] | None = Field(description="the record; null where there is none")


class Memory(BaseModel):
    """One memory, without vectors and internal fields."""

    id: UUID
    content: str
    metadata: LessonOut = Field(description="what the run taught: the learned-procedure record in its wrapping")
    created_dt: datetime
    agent: str
    plan: list[str]
    outcome: str
    reward: Real | None
    tags: list[str]
