"""The learned policy: what was trained, with what verdict; start a training; take a policy out of service."""

from typing import Annotated

from fastapi import APIRouter, Query, Request

from app.deps import Caller, Parts
from app.intake.route import BodyRoute
from app.problems import DOCUMENTED
from app.schemas.policy import AgentIn, PoliciesOut, PolicyOut, RollbackOut, TrainingOut
from app.training.processes import Trainings
from policy import default
from retrieval import listing
from retrieval.errors import NotFound
from writer.run import AgentKey
from writer.training import decision_log, lifecycle

router = APIRouter(prefix="/v1/policy", tags=["policy"], responses=DOCUMENTED, route_class=BodyRoute)


@router.get("")
async def get_policy(agent: Annotated[AgentKey, Query()], parts: Parts, caller: Caller) -> PoliciesOut:
    """Returns every version of the profile's policy with its metrics and its verdict, the newest first."""
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        rows = (await connection.execute(lifecycle.versions(caller.user_sub, agent))).all()
        rewarded = (await connection.execute(decision_log.rewarded(caller.user_sub, agent))).scalar_one()
    found = [PolicyOut.model_validate(row, from_attributes=True) for row in rows]
    serving = next((f"q-{row.version}" for row in found if row.status == "serving"), default.VERSION)
    return PoliciesOut(serving=serving, rewarded_decisions=rewarded, policies=found)


@router.post("/train", status_code=202)
async def train_policy(wanted: AgentIn, request: Request, parts: Parts, caller: Caller) -> TrainingOut:
    """Starts a training of this profile in a process of its own; ``GET /v1/policy`` shows what became of it."""
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        if (await connection.execute(listing.one_profile(caller.user_sub, wanted.agent))).one_or_none() is None:
            raise NotFound("no such profile")
    trainings: Trainings = request.app.state.trainings
    return TrainingOut(status=trainings.start(caller.user_sub, wanted.agent))


@router.post("/rollback")
async def roll_back_policy(wanted: AgentIn, parts: Parts, caller: Caller) -> RollbackOut:
    """Takes the serving policy out of service, and any trial with it; the untrained default goes on."""
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        version = await lifecycle.roll_back(connection, caller.user_sub, wanted.agent, actor=caller.actor)
    return RollbackOut(version=version)
