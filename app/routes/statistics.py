"""Route for the statistics of a profile."""

from collections import Counter
from datetime import datetime

from pydantic import BaseModel, Field

from app.edge.dependencies import AgentPath, Caller, Parts
from app.edge.routers import api_router
from app.schemas.responses import response_of
from retrieval.pages import statistics
from retrieval.pages.listing import known_profile


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


router = api_router("bank", "/v1")


@router.get("/profiles/{agent:path}/statistics")
async def get_statistics(agent: AgentPath, parts: Parts, caller: Caller) -> StatisticsOut:
    """Returns the numbers of a profile: cases, retrievals, reuse of cases, procedures, and runs under way."""
    whose = caller.user_sub, agent
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        await known_profile(connection, *whose)
        cases = (await connection.execute(statistics.cases_by_status_and_outcome(*whose))).all()
        asked = (await connection.execute(statistics.retrievals(*whose))).one()
        shown = (await connection.execute(statistics.shown_cases(*whose))).one()
        learned = (await connection.execute(statistics.active_procedures(*whose))).all()
        under_way = (await connection.execute(statistics.runs_under_way(*whose))).scalar_one()
    by_status: Counter[str] = Counter()
    for row in cases:
        by_status[row.status] += row.cases
    ready = [row for row in cases if row.status == "ready"]
    rewards = sum(row.rewarded for row in ready)
    uses = sum(row.uses for row in learned)
    return StatisticsOut(
        agent=agent,
        cases=CaseNumbers(
            by_status=by_status,
            by_outcome={row.outcome: row.cases for row in ready},
            runs=sum(row.runs for row in ready),
            rewarded=rewards,
            trusted=sum(row.trusted for row in ready),
            mean_reward=statistics.ratio(sum(row.rewards for row in ready), rewards),
            last_retained_at=max((row.last_at for row in cases), default=None),
        ),
        retrievals=response_of(
            RetrievalNumbers,
            asked,
            hit_rate=statistics.ratio(asked.with_cases, asked.decisions - asked.without_memory),
            mean_tokens=statistics.ratio(asked.tokens, asked.decisions),
        ),
        reuse=response_of(ReuseNumbers, shown, precision_at_k=statistics.ratio(shown.helped, shown.judged)),
        procedures=ProcedureNumbers(
            by_kind={row.kind: row.procedures for row in learned},
            uses=uses,
            mean_use_reward=statistics.ratio(sum(row.use_reward for row in learned), uses),
        ),
        runs_under_way=under_way,
    )
