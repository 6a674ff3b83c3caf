"""What memory changed for an agent: GET /v1/impact."""

from typing import Annotated

from fastapi import APIRouter, Query

from app.edge.dependencies import Caller, Parts
from app.edge.intake.route import BodyRoute
from app.edge.problems import DOCUMENTED, raises
from app.impact.impact import Asked, impact_of
from app.schemas.impact import ImpactOut
from retrieval.errors import NotFound
from writer.moment import Moment
from writer.run import AgentKey

router = APIRouter(prefix="/v1/impact", tags=["impact"], responses=DOCUMENTED, route_class=BodyRoute)


@router.get("", responses=raises(NotFound))
async def get_impact(
    agent: Annotated[AgentKey, Query()],
    parts: Parts,
    caller: Caller,
    since: Annotated[Moment | None, Query(description="decisions taken then or later")] = None,
    until: Annotated[Moment | None, Query(description="decisions taken before then")] = None,
) -> ImpactOut:
    """Returns what the served slates earned beside what an empty one, the default and the last policy would have.

    Each difference comes with its 95 % interval, clustered by query, or with how many decisions are missing; it holds
    for one look. Beside it stand the weeks, the cases that never helped and the procedures that put things right.
    """
    await parts.admission.of_agent(caller, "reads", agent)
    return await impact_of(parts, Asked(caller.user_sub, caller.authorised_at, agent, since, until))
