"""Response with the statistics of a profile."""

from datetime import datetime

from pydantic import BaseModel, Field


class CaseNumbers(BaseModel):
    """Numbers of the cases, including those that are no longer in the bank but still stored."""

    by_status: dict[str, int]
    by_outcome: dict[str, int] = Field(description="number of ready cases by outcome")
    runs: int = Field(description="number of runs behind the ready cases, with repeats")
    rewarded: int = Field(description="number of ready cases with a reward")
    trusted: int = Field(description="number of ready cases rewarded by a user, a judge or a metric")
    mean_reward: float | None = Field(description="mean reward of the rewarded ready cases; null: no such case")
    last_retained_at: datetime | None


class RetrievalNumbers(BaseModel):
    """Numbers of the decisions in the log, which keeps 180 days."""

    decisions: int
    without_memory: int = Field(description="decisions with memory off, for the agent or the request")
    with_cases: int
    hit_rate: float | None = Field(description="with_cases / decisions with memory on; null: no such decision")
    mean_tokens: float | None = Field(description="mean length of memory_context in tokens, over all decisions")
    rewarded_with_cases: int
    mean_reward_with_cases: float | None
    rewarded_without_memory: int
    mean_reward_without_memory: float | None
    last_retrieved_at: datetime | None


class ReuseNumbers(BaseModel):
    """Numbers of the reuse of cases; each place of a slate counts."""

    shown: int
    used: int = Field(description="number of served cases that backends reported as used")
    judged: int = Field(description="number of served cases whose decision has a reward")
    helped: int = Field(description="judged cases with a reward of at least 0.5, not reported as unused")
    precision_at_k: float | None = Field(description="helped / judged; null: no case was judged")


class ProcedureNumbers(BaseModel):
    """Numbers of the active procedures."""

    by_kind: dict[str, int]
    uses: float = Field(description="number of rewarded uses; a use shared with other procedures counts in part")
    mean_use_reward: float | None


class StatisticsOut(BaseModel):
    """The numbers of a profile."""

    agent: str
    cases: CaseNumbers
    retrievals: RetrievalNumbers
    reuse: ReuseNumbers
    procedures: ProcedureNumbers
    runs_under_way: int
