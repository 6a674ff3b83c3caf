"""The bodies about learned policies."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from app.schemas.fields import Real
from retrieval.kinds import PolicyStatus
from writer.run import AgentKey, Strict


class PolicyOut(BaseModel):
    """One version of a profile's learned policy, and why it has its status."""

    version: int
    status: PolicyStatus
    feature_version: int
    blend: Real = Field(description="weight of the learned part in the order: n / (n + n0)")
    decisions: int = Field(description="rewarded decisions that it was trained on")
    metrics: dict[str, object]
    verdict: dict[str, object] | None = Field(description="of the gate: every number and every reason")
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
