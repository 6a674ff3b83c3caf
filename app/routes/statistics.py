"""Route for the statistics of a profile."""

from collections import Counter
from typing import Annotated

from fastapi import APIRouter, Path

from app.edge.dependencies import Caller, Parts
from app.edge.intake.route import BodyRoute
from app.edge.problems import DOCUMENTED, raises
from app.schemas.responses import response_of
from app.schemas.statistics import CaseNumbers, ProcedureNumbers, RetrievalNumbers, ReuseNumbers, StatisticsOut
from retrieval.errors import NotFound
from retrieval.pages import statistics
from retrieval.pages.listing import one_profile
from writer.run import AgentKey

router = APIRouter(prefix="/v1", tags=["bank"], responses=DOCUMENTED, route_class=BodyRoute)


@router.get("/profiles/{agent:path}/statistics", responses=raises(NotFound))
async def get_statistics(agent: Annotated[AgentKey, Path()], parts: Parts, caller: Caller) -> StatisticsOut:
    """Returns the numbers of a profile: cases, retrievals, reuse of cases, procedures, and runs under way."""
    whose = caller.user_sub, agent
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        if (await connection.execute(one_profile(*whose))).one_or_none() is None:
            raise NotFound("no such profile")
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
            mean_reward=_ratio(sum(row.rewards for row in ready), rewards),
            last_retained_at=max((row.last_at for row in cases), default=None),
        ),
        retrievals=response_of(
            RetrievalNumbers,
            asked,
            hit_rate=_ratio(asked.with_cases, asked.decisions - asked.without_memory),
            mean_tokens=_ratio(asked.tokens, asked.decisions),
        ),
        reuse=response_of(ReuseNumbers, shown, precision_at_k=_ratio(shown.helped, shown.judged)),
        procedures=ProcedureNumbers(
            by_kind={row.kind: row.procedures for row in learned},
            uses=uses,
            mean_use_reward=_ratio(sum(row.use_reward for row in learned), uses),
        ),
        runs_under_way=under_way,
    )


def _ratio(part: float, whole: float) -> float | None:
    return round(part / whole, 4) if whole else None
