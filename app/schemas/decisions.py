"""Responses about decisions: query, candidates, served slate, and the rewards that followed."""

from datetime import datetime
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.schemas.fields import Real
from policy.reasons import Reason
from retrieval.tables.kinds import Arm, CaseStatus, RewardSource, RunOutcome


class DecisionOut(BaseModel):
    """One decision: a query, and the slate that was served for it."""

    retrieval_id: UUID
    agent: str
    query: str
    rewritten: str | None = Field(description="rewritten query that was searched for; null: the query itself")
    mode: str
    degraded: list[str]
    policy_version: str
    arm: Arm = Field(description="policy that ordered the cases: default, serving, or candidate (on trial)")
    k: int
    case_ids: list[UUID] = Field(description="cases of the slate, in the order of their places")
    slate_propensity: Real = Field(description="probability of this exact slate, over all arms and random draws")
    tokens: int = Field(description="length of `memory_context` in tokens")
    reward: Real | None
    reward_source: RewardSource | None
    created_at: datetime


class DecisionsOut(BaseModel):
    """One page of decisions, the newest first."""

    decisions: list[DecisionOut]
    next_cursor: str | None


class TermsOut(BaseModel):
    """Terms of a score, in log odds up to a constant per query.

    The score is `order` + `learned`.
    """

    model_config = ConfigDict(from_attributes=True)

    order: float = Field(description="minus half the logarithm of its place by the order that replay chose")
    learned: float = Field(description="term added by the learned policy; 0 for the default")
    spread: float = Field(description="standard deviation between the members of the policy")
    expected: float | None = Field(description="reward expected of a slate with this case alone; null for the default")


class CaseNow(BaseModel):
    """The case of a candidate, as it is stored now."""

    task: str
    plan: list[str]
    status: CaseStatus
    outcome: RunOutcome
    reward: Real | None
    changed: bool = Field(description="true: its reward or outcome has changed since the decision")


class CandidateOut(BaseModel):
    """A case that the search returned, served or not."""

    case_id: UUID
    place: int | None = Field(description="1-based place on the slate; null: not served")
    propensity: Real | None = Field(description="probability of this case at this place")
    used: bool | None = Field(description="true or false: used or not, as the backend reported; null: not reported")
    agreed: Real | None = Field(
        description="agreement of the later run's plan with the plan of this case, 0 to 1; null: no run reported yet"
    )
    reason: Reason | None = Field(
        description="reason why the case was served or not; null: it can no longer be computed"
    )
    score: Real
    terms: TermsOut | None = Field(
        description="terms of the score; null: the policy or its feature version no longer exists"
    )
    group: int = Field(description="number shared by candidates with the same content")
    source: int = Field(description="number shared by candidates from the same source")
    features: dict[str, float | None] = Field(description="inputs of the policy, by name")
    case: CaseNow | None = Field(description="the case as it is now; null: deleted since")


class ToldVersionOut(BaseModel):
    """A version of a procedure that was served with the slate."""

    procedure_id: UUID
    version: int
    used: bool | None


class RunOfDecision(BaseModel):
    """A run that received the slate of the decision."""

    case_id: UUID
    status: CaseStatus
    outcome: RunOutcome
    reward: Real | None
    reward_source: RewardSource | None
    created_at: datetime


class RewardOut(BaseModel):
    """A reward for the decision or for one of its runs."""

    case_id: UUID | None = Field(description="run that was rewarded; null: the decision itself")
    reward: Real
    source: RewardSource
    actor: str
    created_at: datetime


class WouldServe(BaseModel):
    """The slate that a live policy would serve now, without exploration."""

    policy_version: str
    case_ids: list[UUID]


class WholeDecisionOut(DecisionOut):
    """One decision with its inputs, candidates, runs and rewards."""

    memory_context: str | None = Field(
        description="context text that was served; null: not kept, older than 30 days, or partly deleted since"
    )
    procedures: list[ToldVersionOut]
    seed: int
    min_similarity: Real | None
    candidates: list[CandidateOut] = Field(description="all candidates, in the order of the search")
    off_by: float | None = Field(
        description="largest difference between a logged score and its recomputation; null: scores cannot be recomputed"
    )
    would_serve: list[WouldServe]
    runs: list[RunOfDecision]
    rewards: list[RewardOut]
    missing: list[str] = Field(description="data deleted since the decision, one sentence each")
