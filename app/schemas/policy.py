"""Requests and responses about learned policies."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from app.schemas.fields import Real
from retrieval.tables.kinds import PolicyStatus
from writer.run import AgentKey, Strict


class LookOut(BaseModel):
    """One interim comparison of two policies in a trial: the difference of their rewards, and whether it sufficed."""

    difference: str = Field(
        description="compared policies: `candidate - default`, `candidate - serving` or `default - serving`"
    )
    decisions: int = Field(description="number of rewarded decisions since the start of the trial, at this look")
    z: float = Field(description="difference in standard errors above zero")
    bound: float = Field(description="value of z that was required")
    passed: bool


class TrialOut(BaseModel):
    """The state of a trial after the gate's last look."""

    decisions: int = Field(description="rewarded decisions since the trial began")
    more: int | None = Field(
        description="rewarded decisions still needed at the present rate; null: out of reach, or not known yet"
    )
    more_days: float | None = Field(description="days still needed, at the rate of this trial so far")
    chance: float | None = Field(
        description="probability of promotion before the trial ends; null: cannot be estimated yet"
    )
    looks: list[LookOut]


class PolicyOut(BaseModel):
    """One version of a profile's learned policy, with its metrics and verdict."""

    version: int
    status: PolicyStatus
    feature_version: int
    blend: Real = Field(description="weight of the learned part in the order: n / (n + n0)")
    decisions: int = Field(description="number of rewarded decisions it was trained on")
    metrics: dict[str, JsonValue]
    verdict: dict[str, JsonValue] | None = Field(description="verdict of the gate, with every number and reason")
    trial: TrialOut | None = Field(
        default=None, description="state of its trial; null: the gate has not looked at it yet"
    )
    created_at: datetime
    promoted_at: datetime | None
    retired_at: datetime | None


class OrderOut(BaseModel):
    """An order of cases, and how well it would have ranked the agent's own runs."""

    order: str = Field(description="name of the order; choice: in turn the order that had done best so far")
    first: float = Field(description="share of runs for which a plan that worked would have stood first, 0 to 1")
    low: float = Field(description="lower end of the 95 % interval of that share; 0: not computed yet")
    high: float = Field(description="upper end of the 95 % interval of that share; 1: not computed yet")
    ndcg: float = Field(description="mean nDCG@4 of the agreement with the plan that worked, 0 to 1")


class ReplayOut(BaseModel):
    """A replay: the task of each run that went well was searched for again among the runs before it."""

    sentence: str = Field(description="the result in one sentence")
    runs: int = Field(description="newest cases that were replayed")
    questions: int = Field(description="runs among them that went well and that an earlier run answers")
    serves: str = Field(description="order that ranks the cases from now on")
    orders: list[OrderOut]
    telling_words: list[str] = Field(description="words that tell the agent's kinds of tasks apart, the best first")
    created_at: datetime


class PoliciesOut(BaseModel):
    """The policies of a profile, the newest first; ``serving`` names the one that most decisions follow."""

    serving: str
    replay: ReplayOut | None = Field(description="replay of the agent's own runs; null: none was made yet")
    compared: str = Field(
        description="steps and failed calls of runs with and without a case, in a sentence, or how many are missing"
    )
    rewarded_decisions: int = Field(
        description="number of rewarded decisions in the log; the first policy is trained at 100"
    )
    policies: list[PolicyOut]


class AgentIn(Strict):
    """Names an agent."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"agent": "db-operator"}]})

    agent: AgentKey


class TrainingOut(BaseModel):
    """The status of a training: started by this request, or already waiting or running."""

    status: Literal["started", "running"]


class RollbackOut(BaseModel):
    """The version that was taken out of service; the order that replay chose replaces it."""

    version: int
