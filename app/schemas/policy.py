"""The bodies about learned policies."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from app.schemas.fields import Real
from retrieval.tables.kinds import PolicyStatus
from writer.run import AgentKey, Strict


class LookOut(BaseModel):
    """One look at a difference in a trial."""

    difference: str = Field(
        description="of which two: `candidate - default`, `candidate - serving`, `default - serving`"
    )
    decisions: int = Field(description="rewarded ones, the first of the trial, that it was at")
    z: float = Field(description="how many standard errors above zero the difference was")
    bound: float = Field(description="how many were asked for")
    passed: bool


class TrialOut(BaseModel):
    """What the gate's looks have said of a policy, as of the last night, and what is still to come."""

    decisions: int = Field(description="rewarded ones since it began")
    more: int | None = Field(
        description="rewarded decisions that it still takes if all stays as it is; null: not to be won"
    )
    more_days: float | None = Field(description="the same in days, at the rate of this trial so far")
    chance: float | None = Field(description="that it is promoted before the trial ends; null: nobody can say yet")
    looks: list[LookOut]


class PolicyOut(BaseModel):
    """One version of a profile's learned policy, and why it has its status."""

    version: int
    status: PolicyStatus
    feature_version: int
    blend: Real = Field(description="weight of the learned part in the order: n / (n + n0)")
    decisions: int = Field(description="rewarded decisions that it was trained on")
    metrics: dict[str, JsonValue]
    verdict: dict[str, JsonValue] | None = Field(description="of the gate: every number and every reason")
    trial: TrialOut | None = Field(default=None, description="null before the first night of its trial")
    prior_version: int | None
    created_at: datetime
    promoted_at: datetime | None
    retired_at: datetime | None


class FleetPolicyOut(BaseModel):
    """A policy of the agent's fleet that serves the profile, or is on trial in it."""

    version: int
    status: PolicyStatus
    decisions: int = Field(description="rewarded ones that it was trained on, of all users")
    users: int = Field(description="who contributed to it")
    created_at: datetime
    promoted_at: datetime | None


class PoliciesOut(BaseModel):
    """The policies of a profile, the newest first; ``serving`` is what most decisions follow."""

    serving: str
    rewarded_decisions: int = Field(description="what there is to learn from; a first candidate is trained at 100")
    policies: list[PolicyOut]
    fleet: list[FleetPolicyOut] = Field(
        description="those of its fleet that it follows: where it receives, and none of its own serves"
    )


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
