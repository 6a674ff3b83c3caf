"""Route for the impact of memory on an agent's rewards."""

from app.edge.dependencies import Agent, Caller, Parts, Since, Until
from app.edge.routers import api_router
from app.impact.report import ImpactRequest, impact_of
from app.schemas.impact import ImpactOut

router = api_router("impact", "/v1/impact")


@router.get("")
async def get_impact(agent: Agent, parts: Parts, caller: Caller, since: Since = None, until: Until = None) -> ImpactOut:
    """Compares the rewards of the served slates with an empty slate, the default policy and the last policy.

    Each difference has a 95 % interval, clustered by query, or the number of decisions still needed; the interval holds
    for a single look. The response also has weekly numbers, cases that never helped, and procedures used with success.
    """
    return await impact_of(parts, ImpactRequest(caller.user_sub, caller.authorised_at, agent, since, until))
