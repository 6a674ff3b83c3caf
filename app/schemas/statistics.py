"""The statistics of a profile, as the API tells them."""

from datetime import datetime

from pydantic import BaseModel, Field


class CaseNumbers(BaseModel):
    """What the bank holds, cases out of it that can still be seen included."""

    by_status: dict[str, int]
    by_outcome: dict[str, int] = Field(description="of the ready cases")
    runs: int = Field(description="of the ready cases, repeats counted")
    rewarded: int = Field(description="ready cases with a reward")
    trusted: int = Field(description="of these, rewarded by a user, a judge or a metric")
    mean_reward: float | None = Field(description="of the rewarded ready cases; null: there is none")
    last_retained_at: datetime | None


class RetrievalNumbers(BaseModel):
    """What was asked, as far as the log goes back (180 days)."""

    decisions: int
    without_memory: int = Field(description="of these, while memory was off, for the agent or the request")
    with_cases: int
    hit_rate: float | None = Field(description="with_cases, of the decisions with memory; null: there is none")
    mean_tokens: float | None = Field(description="that memory_context added, over all decisions")
    rewarded_with_cases: int
    mean_reward_with_cases: float | None
    rewarded_without_memory: int
    mean_reward_without_memory: float | None
    last_retrieved_at: datetime | None


class ReuseNumbers(BaseModel):
    """What came of the cases that were shown, each place of a slate counted."""

    shown: int
    used: int = Field(description="as backends said")
    judged: int = Field(description="shown by a decision that was rewarded")
    helped: int = Field(description="of these, not said to be unused, with a reward of 0.5 or more")
    precision_at_k: float | None = Field(description="helped / judged; null: none was judged")


class ProcedureNumbers(BaseModel):
    """The active procedures."""

    by_kind: dict[str, int]
    uses: float = Field(description="rewarded ones, in shares of their outcomes")
    mean_use_reward: float | None


class StatisticsOut(BaseModel):
    """The numbers of a profile."""

    agent: str
    cases: CaseNumbers
    retrievals: RetrievalNumbers
    reuse: ReuseNumbers
    procedures: ProcedureNumbers
    runs_under_way: int
