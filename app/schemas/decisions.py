"""The bodies about decisions: what was asked, what could have been told, what was, and what came of it."""

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
    rewritten: str | None = Field(description="what was searched for in its place; null: the query itself")
    mode: str
    degraded: list[str]
    policy_version: str
    arm: Arm = Field(description="whose order it followed: the default's, the serving policy's, or the one's on trial")
    k: int
    case_ids: list[UUID] = Field(description="of the slate, by place")
    slate_propensity: Real = Field(description="chance of this very slate, over every arm and draw")
    tokens: int = Field(description="of `memory_context`")
    reward: Real | None
    reward_source: RewardSource | None
    created_at: datetime


class DecisionsOut(BaseModel):
    """One page of decisions, the newest first."""

    decisions: list[DecisionOut]
    next_cursor: str | None


class TermsOut(BaseModel):
    """What a score is the sum of: `found` + `record` + `plan` + `returned` + `learned`.

    Log odds up to a constant of the query.
    """

    model_config = ConfigDict(from_attributes=True)

    found: float = Field(description="by the fused rank over the best one's")
    record: float = Field(description="by the reward to be expected of the case by its record")
    plan: float = Field(description="by how well its plan agrees with what the query is expected to need")
    returned: float = Field(description="by how near it is, where its task seems to have come back")
    learned: float = Field(description="what the policy adds; 0 of the default")
    spread: float = Field(description="how far the members of the policy differ, as a standard deviation")
    expected: float | None = Field(description="reward expected of a slate of this case alone; null of the default")


class CaseNow(BaseModel):
    """What is left of a candidate."""

    task: str
    plan: list[str]
    status: CaseStatus
    outcome: RunOutcome
    reward: Real | None
    changed: bool = Field(description="whether its reward, or whether it failed, is another than it was when decided")


class CandidateOut(BaseModel):
    """A case that was found, whether it was served or not."""

    case_id: UUID
    place: int | None = Field(description="on the slate, from 1 on; null: it was not served")
    propensity: Real | None = Field(description="chance of this case in this place")
    used: bool | None = Field(description="whether the backend said that it used it; null: it did not say")
    agreed: Real | None = Field(
        description="how well the plan of the run that was shown it agrees with its own, 0 to 1; null: no run did"
    )
    reason: Reason | None = Field(description="why it stands or does not; null: nobody can tell any more")
    score: Real
    terms: TermsOut | None = Field(description="null: the policy, or its features, are no longer there")
    group: int = Field(description="candidates of one group say the same")
    source: int = Field(description="candidates of one number come from one source")
    features: dict[str, float | None] = Field(description="what the policy saw of it, by name")
    case: CaseNow | None = Field(description="null: it was deleted since")


class ToldVersionOut(BaseModel):
    """A version of a procedure that was told with the slate."""

    procedure_id: UUID
    version: int
    used: bool | None


class RunOfDecision(BaseModel):
    """A run that was told what the decision served."""

    case_id: UUID
    status: CaseStatus
    outcome: RunOutcome
    reward: Real | None
    reward_source: RewardSource | None
    created_at: datetime


class RewardOut(BaseModel):
    """A reward that was given to the decision, or to one of its runs."""

    case_id: UUID | None = Field(description="of the run; null: it was given to the decision")
    reward: Real
    source: RewardSource
    actor: str
    created_at: datetime


class WouldServe(BaseModel):
    """What a policy that is live now would serve by its order and the rules, without a lot."""

    policy_version: str
    case_ids: list[UUID]


class WholeDecisionOut(DecisionOut):
    """One decision with everything that went into it, and what came of it."""

    memory_context: str | None = Field(
        description="what was told; null: it was not kept, or something was deleted since"
    )
    procedures: list[ToldVersionOut]
    seed: int
    min_similarity: Real | None
    candidates: list[CandidateOut] = Field(description="in the order in which the search found them")
    off_by: float | None = Field(
        description="largest difference between a logged score and the same one computed again; null: it cannot be"
    )
    would_serve: list[WouldServe]
    runs: list[RunOfDecision]
    rewards: list[RewardOut]
    missing: list[str] = Field(description="what is no longer there, and so is not told")
