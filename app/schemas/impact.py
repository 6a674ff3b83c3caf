"""Response about the impact of memory: differences with intervals, weekly numbers, cases and procedures."""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, Field

from app.schemas.fields import Real
from retrieval.tables.kinds import ProcedureKind, RunOutcome

Other = Literal["an empty slate", "the default", "the last policy"]
Says = Literal["helped", "did harm", "cannot say"]


class RangeOut(BaseModel):
    """An estimate with its 95 % interval, which holds for a single look at the data."""

    estimate: float
    low: float
    high: float


class RewardDifferenceOut(BaseModel):
    """Mean reward of the served slates minus that of an alternative, over the same decisions."""

    less: Other
    policy_version: str | None = Field(description="policy of the alternative; null: the alternative is an empty slate")
    says: Says = Field(
        description="`helped`: the whole interval is above 0; `did harm`: it is below 0; `cannot say`: it contains 0 "
        "or data is missing"
    )
    sentence: str
    reward: RangeOut | None = Field(
        description="difference in reward per decision; null: too few slates of the alternative were served"
    )
    decisions: int = Field(description="number of rewarded decisions used, the newest first")
    slates: int = Field(description="decisions among them that were served the alternative's slate")
    effective: float = Field(description="effective number of queries with the alternative's slate, by their weights")
    more: int | None = Field(
        description="rewarded decisions still needed at the present rate; 0: enough; null: unknown"
    )


class RunMeansOut(BaseModel):
    """Means over runs. A comparison of two groups is no proof: easy tasks may find a case more often."""

    runs: int
    steps: float
    errors: float
    reward: float | None = Field(description="mean reward of the rewarded runs")


class ImpactWeekOut(BaseModel):
    """One week, beginning on Monday in UTC."""

    starts: datetime
    decisions: int
    hit_rate: float | None = Field(description="share of decisions with at least one case, among those with memory on")
    reuse_rate: float | None = Field(
        description="share of decisions that used a case, among those whose backend reported use"
    )
    mean_tokens: float | None = Field(description="mean length of the context in tokens")
    with_memory: RunMeansOut | None = Field(description="runs that were served a case")
    without_memory: RunMeansOut | None = Field(description="runs that were served no case")
    so_far: RangeOut | None = Field(
        description="difference to an empty slate, over all decisions up to the end of this week"
    )


class NeverHelped(BaseModel):
    """A case that was served often and never helped."""

    case_id: UUID
    task: str
    outcome: RunOutcome
    judged: int = Field(description="rewarded decisions that served it; none was a success that may have used it")


class PutRight(BaseModel):
    """A procedure that was used with success."""

    procedure_id: UUID
    version: int
    name: str
    kind: ProcedureKind
    uses: Real = Field(description="number of rewarded uses; a use shared with other procedures counts in part")
    use_reward: Real = Field(description="sum of the rewards over these uses")


class LookedAt(BaseModel):
    """The decisions that the numbers were computed from."""

    decisions: int = Field(description="decisions that had candidates, rewarded or not")
    rewarded: int
    first_at: datetime | None
    last_at: datetime | None
    most: int = Field(description="maximum number of decisions used, the newest first")
    most_for_policies: int = Field(description="maximum number of decisions for which a policy's slate is recomputed")


class ImpactOut(BaseModel):
    """The impact of memory on the rewards of an agent."""

    agent: str
    looked_at: LookedAt
    mean_reward: float | None = Field(description="mean reward of the rewarded decisions used")
    differences: list[RewardDifferenceOut]
    weeks: list[ImpactWeekOut] = Field(description="the last 26 weeks, without weeks that had no decision and no run")
    never_helped: list[NeverHelped] = Field(description="cases judged at least 5 times, the most often judged first")
    put_right: list[PutRight] = Field(description="procedures by falling sum of rewards")
