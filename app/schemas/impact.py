"""The body about what memory changed: differences with their intervals, the weeks, and what helped and what did not."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from app.schemas.fields import Real
from retrieval.tables.kinds import ProcedureKind, RunOutcome

Other = Literal["an empty slate", "the default", "the last policy"]
Says = Literal["helped", "did harm", "cannot say"]


class RangeOut(BaseModel):
    """An estimate with its 95 % interval, for one look."""

    estimate: float
    low: float
    high: float


class DifferenceOut(BaseModel):
    """What the served slates earned less what something else would have, over the same decisions."""

    less: Other
    policy_version: str | None = Field(description="of the policy in its place; null of an empty slate")
    says: Says = Field(description="`helped` where the whole interval lies above 0, `did harm` where it lies below")
    sentence: str
    reward: RangeOut | None = Field(description="reward per decision; null: too few slates of its kind were served")
    decisions: int = Field(description="rewarded ones that were looked at, the newest")
    slates: int = Field(description="of them, those that got its slate")
    effective: float = Field(description="queries with its slate, each counted by its weight")
    more: int | None = Field(
        description="rewarded decisions until it can be said, if all stays as it is; 0: it can; null: nobody knows"
    )


class RunsOut(BaseModel):
    """What runs came to; a comparison of two of them proves nothing, for easy tasks may be those that find a case."""

    runs: int
    steps: float
    errors: float
    reward: float | None = Field(description="mean of those that have one")


class ImpactWeekOut(BaseModel):
    """One week, from Monday on in UTC."""

    starts: datetime
    decisions: int
    hit_rate: float | None = Field(description="with a case, of those with memory")
    reuse_rate: float | None = Field(description="that used a case, of those whose backend said what it used")
    mean_tokens: float | None = Field(description="that the context added")
    with_memory: RunsOut | None = Field(description="runs that were shown a case")
    without_memory: RunsOut | None = Field(description="runs that were not")
    so_far: RangeOut | None = Field(description="over an empty slate, by all decisions looked at up to its end")


class NeverHelped(BaseModel):
    """A case that was shown often and never helped."""

    case_id: UUID
    task: str
    outcome: RunOutcome
    judged: int = Field(description="rewarded decisions that showed it, none of them a success that may have used it")


class PutRight(BaseModel):
    """A procedure that was used with success."""

    procedure_id: UUID
    version: int
    name: str
    kind: ProcedureKind
    uses: Real = Field(description="rewarded ones, in shares of their outcomes")
    use_reward: Real = Field(description="sum of the rewards over them")


class LookedAt(BaseModel):
    """What the numbers were computed over."""

    decisions: int = Field(description="that had something to tell, rewarded or not")
    rewarded: int
    first_at: datetime | None
    last_at: datetime | None
    most: int = Field(description="at most so many of the newest are looked at")
    most_for_policies: int = Field(description="the same where a policy is asked what it would have served")


class ImpactOut(BaseModel):
    """What memory changed for an agent."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "agent": "db-operator",
                "looked_at": {
                    "decisions": 2411,
                    "rewarded": 2204,
                    "first_at": "2026-01-05T08:00:00Z",
                    "last_at": "2026-03-30T17:20:00Z",
                    "most": 10000,
                    "most_for_policies": 500,
                },
                "mean_reward": 0.71,
                "differences": [
                    {
                        "less": "an empty slate",
                        "policy_version": None,
                        "says": "helped",
                        "sentence": "helped: +0.19 reward per decision (95 %: +0.04 to +0.35, for one look)",
                        "reward": {"estimate": 0.19, "low": 0.04, "high": 0.35},
                        "decisions": 2204,
                        "slates": 71,
                        "effective": 24.3,
                        "more": 0,
                    }
                ],
                "weeks": [],
                "never_helped": [],
                "put_right": [],
            }
        }
    )

    agent: str
    looked_at: LookedAt
    mean_reward: float | None = Field(description="of the rewarded decisions that were looked at")
    differences: list[DifferenceOut]
    weeks: list[ImpactWeekOut] = Field(description="the last 26 without those in which nothing was asked or run")
    never_helped: list[NeverHelped] = Field(description="the most often judged first; judged at least 5 times")
    put_right: list[PutRight] = Field(description="the most reward first")
