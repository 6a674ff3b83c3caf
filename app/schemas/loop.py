"""The bodies of the loop: retain, retrieve, feedback; each with an example for the documentation."""

from datetime import datetime
from typing import Literal, Self
from uuid import UUID

from pydantic import BaseModel, Field, JsonValue, model_validator

from app.schemas.fields import K, Real, RrfK, SearchText, Similarity, Weight
from app.schemas.recall import RecallOut
from app.schemas.responses import RowOut
from retrieval.sections.context import PartName
from retrieval.tables.kinds import CaseKind, ProcedureKind, RewardSource, Rewrite, RunOutcome
from writer.run import AgentKey, Reward, SessionName, Strict, Tag


class RedactionOut(BaseModel):
    """The number of secrets of one kind that were removed."""

    kind: str
    count: int


class RetainOut(BaseModel):
    """The acknowledgement: the run is on disk."""

    case_id: UUID
    status: str
    redactions: list[RedactionOut]
    retrieval_id: UUID | None = Field(
        description="retrieval the run is joined to; null: the body named none, or an unknown one"
    )
    warnings: list[str] = Field(
        default_factory=list, description="parts of the run that are kept and not read, or that are not kept"
    )


class FiltersIn(Strict):
    """Filters on the cases of a slate. A case must pass every list; an empty list passes every case."""

    tags: list[Tag] = Field(default_factory=list, max_length=50, description="the case must have all of these tags")
    kinds: list[CaseKind] = Field(default_factory=list, description="the case must be of one of these kinds")
    outcomes: list[RunOutcome] = Field(
        default_factory=list,
        description="the run must have one of these outcomes; aborted runs are returned only if listed here",
    )


class RetrieveIn(Strict):
    """A query for memories before the agent acts."""

    agent: AgentKey
    query: SearchText
    k: K | None = Field(
        default=None, description="maximum number of cases on the slate; null: the profile's setting (default 4)"
    )
    token_budget: int = Field(default=1500, ge=0, le=100_000)
    filters: FiltersIn = Field(default_factory=FiltersIn)
    min_similarity: Similarity | None = None
    explain: bool = False
    memory: bool = Field(
        default=True,
        description="false: answer without memory. The response has no case, procedure or text; the decision is logged "
        "with mode `off`, so that its reward can be compared with rewards of answers with memory",
    )
    tool_memory: bool = Field(
        default=False, description="true: add to the context which tools fail and what fixed the failures"
    )
    others: bool = Field(
        default=True,
        description="true: add to the context, as far as the budget allows, runs beside the slate: at most one failed "
        "run of a similar task, and one that solved it in another way",
    )
    full_text_weight: Weight | None = None
    semantic_weight: Weight | None = None
    rrf_k: RrfK | None = None
    session_id: SessionName | None = Field(
        default=None,
        description="session of the agent that `memory_context` begins with; an unknown session is not an error",
    )
    recall: bool = Field(
        default=False,
        description="true: also search turns, facts and knowledge, as `POST /v1/recall` does. They are in `recalled`, "
        "and in `memory_context` within the shares of session and facts",
    )
    rewrite: Rewrite | None = Field(default=None, description="rewriter of the query; null: the one set in the profile")


class SlotOut(RowOut):
    """One place of the slate."""

    case_id: UUID = Field(validation_alias="id")
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
    q_value: float | None = Field(description="predicted reward of using this case; null until a trained policy serves")
    propensity: float
    why: str
    explain: dict[str, float | None] | None = Field(
        default=None, description="terms of the order by name, if `explain` was set"
    )


class ToldProcedureOut(BaseModel):
    """A procedure that may guide the task; name its id in ``used_procedure_ids`` of the run that used it."""

    id: UUID
    version: int
    kind: ProcedureKind
    procedure_name: str
    trigger: str
    task_type: str
    domain: str
    query_kind: str | None = Field(description="kind of request its run answered; null: unknown")
    success_score: Real | None = Field(description="success of its run, 0 to 1; null: unknown")
    duration_ms: Real | None = Field(description="total duration of its run's calls; null: unknown")
    steps: list[str]
    similarity: float | None = Field(
        description="cosine of the task and the trigger, or the nearest run that taught it; null: found by words"
    )
    why: str
    uses: Real
    use_reward: Real = Field(description="sum of the rewards over its uses")
    occurrences: int = Field(description="number of runs that taught the same procedure")
    alternative_to: UUID | None = Field(description="better procedure of this response with the same trigger")


class OtherOut(RowOut):
    """A run in ``memory_context`` outside the slate; it has no place and earns no credit."""

    case_id: UUID = Field(validation_alias="id")
    task: str
    plan: list[str]
    outcome: str
    reward: float | None


class ThresholdOut(BaseModel):
    """The least similarity at which a procedure is returned."""

    similarity: float
    origin: Literal["measured", "profile", "request", "source"] = Field(
        description="origin of the threshold: measured for the embedding model, set by the profile or the request, or "
        "the default for a model that could not be measured"
    )
    right: float | None = Field(
        description="share of calibration pairs that the threshold classifies correctly; null: not measured"
    )


class PartOut(BaseModel):
    """Tokens of one part of ``memory_context``."""

    part: PartName
    tokens: int = Field(
        description="tokens of its own lines; the frame around all parts counts only in `tokens` of the response"
    )
    shown: int = Field(
        description="number of items shown: turns, facts and knowledge, procedures, cases, or other runs"
    )
    left_out: int = Field(description="number of items that did not fit the budget")


class RetrieveOut(RowOut):
    """The slate, the text for the prompt, and the id for the later reward."""

    retrieval_id: UUID
    cases: list[SlotOut]
    procedures: list[ToldProcedureOut]
    others: list[OtherOut] = Field(description="runs outside the slate that `memory_context` contains")
    procedure_threshold: ThresholdOut | None = Field(
        validation_alias="threshold", description="least similarity of a procedure; null: the profile has no procedures"
    )
    memory_context: str = Field(
        description="text for the prompt: session, facts about the user, procedures, cases, other runs, in this order"
    )
    tokens: int
    parts: list[PartOut] = Field(description="non-empty parts of `memory_context`, in their order")
    policy_version: str
    mode: Literal["hybrid", "keyword", "off", "empty"]
    degraded: list[str]
    recalled: RecallOut | None = Field(
        description="turns, facts and knowledge, if the request set `recall`; null: it did not, or memory is off",
    )
    rewritten: str | None = Field(description="rewritten query that was searched for; null: the query itself")
    why_empty: str | None = Field(
        description="reason for an empty slate: memory is off for the agent or the request; the bank has no case; no "
        "case is related to the query (similarity below the embedding model's level for unrelated texts, and no rare "
        "word in common); no case may be shown; or the slate was left empty at random. null: the slate has a case"
    )


class FeedbackIn(Strict):
    """A reward for one pass of the loop: name its retrieval, the case of its run, or both."""

    retrieval_id: UUID | None = None
    case_id: UUID | None = None
    reward: Reward | None = None
    thumb: Literal["up", "down"] | None = None
    source: RewardSource = Field(
        default="user",
        description="source of the reward. Only services may send `judge` or `metric`; a user's own token is refused. "
        "A `heuristic` reward does not count beside one of another source",
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


class FeedbackOut(RowOut):
    """The reward that now counts for the named run or retrieval, and the rows it changed."""

    reward: Real
    source: RewardSource
    case_ids: list[UUID] = Field(
        description="runs that were rewarded: the run of the case, or all runs of the retrieval"
    )
    retrieval_id: UUID | None = Field(
        validation_alias="decision_id",
        description="retrieval whose cases and procedures were credited; null: the run had no retrieval",
    )
    withdrawn_procedure_ids: list[UUID] = Field(
        validation_alias="withdrawn", description="procedures learned from these runs alone, now out of use"
    )


class HybridSearchIn(Strict):
    """The body by which flows search a hosted Postgres, or casebank in its place; only casebank knows ``agent``."""

    query: SearchText
    agent: AgentKey | None = Field(default=None, description="agent to search; null: all agents of the user")
    match_count: K | None = Field(
        default=None, description="maximum number of memories; null: the profile's setting (default 4)"
    )


class LessonOut(BaseModel):
    """The lesson of a run, in the form of the flow's learned-procedure record."""

    status: Literal["procedure_learned", "failure_lesson", "no_failure_detected"] | None = Field(
        description="failure_lesson: a failure that was never fixed; null: calls failed for an unknown reason, or the "
        "lesson is out of use"
    )
    data: dict[str, JsonValue] | None = Field(description="learned-procedure record; null: no record")


class Memory(RowOut):
    """One memory in the format of the hosted flow, without vectors and internal fields."""

    id: UUID
    content: str = Field(validation_alias="task")
    metadata: LessonOut = Field(description="lesson of the run: the learned-procedure record in its wrapping")
    created_dt: datetime = Field(validation_alias="created_at")
    agent: str = Field(validation_alias="agent_key")
    plan: list[str]
    outcome: str
    reward: Real | None
    tags: list[str]


class RewriteIn(Strict):
    """A user's message that is to be rewritten as a search query."""

    agent: AgentKey
    query: SearchText
    rewrite: Rewrite | None = Field(default=None, description="rewriter; null: the one set in the profile")
