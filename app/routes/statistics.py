"""The numbers of a profile, for its owner."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Path

from app.edge.dependencies import Caller, Parts
from app.edge.intake.route import BodyRoute
from app.edge.problems import DOCUMENTED, raises
from app.schemas.statistics import CaseNumbers, ProcedureNumbers, RetrievalNumbers, ReuseNumbers, StatisticsOut
from retrieval.database.rows import AnyRow
from retrieval.errors import NotFound
from retrieval.pages import statistics
from retrieval.pages.listing import one_profile
from writer.run import AgentKey

router = APIRouter(prefix="/v1", tags=["bank"], responses=DOCUMENTED, route_class=BodyRoute)


@router.get("/profiles/{agent:path}/statistics", responses=raises(NotFound))
async def get_statistics(agent: Annotated[AgentKey, Path()], parts: Parts, caller: Caller) -> StatisticsOut:
    """Returns what a profile's bank holds, how often it is asked, and what came of that."""
    whose = caller.user_sub, agent
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        if (await connection.execute(one_profile(*whose))).one_or_none() is None:
            raise NotFound("no such profile")
        kept = (await connection.execute(statistics.cases_by_status_and_outcome(*whose))).all()
        asked = (await connection.execute(statistics.retrievals(*whose))).one()
        shown = (await connection.execute(statistics.shown_cases(*whose))).one()
        learned = (await connection.execute(statistics.active_procedures(*whose))).all()
        under_way = (await connection.execute(statistics.runs_under_way(*whose))).scalar_one()
    return StatisticsOut(
        agent=agent,
        cases=_cases(kept),
        retrievals=_retrievals(asked),
        reuse=ReuseNumbers(**shown._mapping, precision_at_k=_ratio(shown.helped, shown.judged)),  # noqa: SLF001 - public
        procedures=_procedures(learned),
        runs_under_way=under_way,
    )


def _cases(rows: Sequence[AnyRow]) -> CaseNumbers:
    by_status: Counter[str] = Counter()
    for row in rows:
        by_status[row.status] += row.cases
    ready = [row for row in rows if row.status == "ready"]
    rewarded = sum(row.rewarded for row in ready)
    return CaseNumbers(
        by_status=by_status,
        by_outcome={row.outcome: row.cases for row in ready},
        runs=sum(row.runs for row in ready),
        rewarded=rewarded,
        trusted=sum(row.trusted for row in ready),
        mean_reward=_ratio(sum(row.rewards for row in ready), rewarded),
        last_retained_at=max((row.last_at for row in rows), default=None),
    )


def _retrievals(row: AnyRow) -> RetrievalNumbers:
    return RetrievalNumbers(
        decisions=row.asked,
        without_memory=row.off,
        with_cases=row.hits,
        hit_rate=_ratio(row.hits, row.asked - row.off),
        mean_tokens=_ratio(row.tokens, row.asked),
        rewarded_with_cases=row.rewarded_hits,
        mean_reward_with_cases=row.reward_with_cases,
        rewarded_without_memory=row.rewarded_off,
        mean_reward_without_memory=row.reward_without_memory,
        last_retrieved_at=row.last_at,
    )


def _procedures(rows: Sequence[AnyRow]) -> ProcedureNumbers:
    uses = sum(row.uses for row in rows)
    return ProcedureNumbers(
        by_kind={row.kind: row.procedures for row in rows},
        uses=uses,
        mean_use_reward=_ratio(sum(row.use_reward for row in rows), uses),
    )


def _ratio(part: float, whole: float) -> float | None:
    return round(part / whole, 4) if whole else None
