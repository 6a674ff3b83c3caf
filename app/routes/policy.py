"""Routes for learned policies: list them with their verdicts, start a training, roll back."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request
from sqlalchemy.ext.asyncio import AsyncConnection

from app.edge.dependencies import Caller, Parts
from app.edge.intake.route import BodyRoute
from app.edge.problems import DOCUMENTED, raises
from app.impact.compared import compared
from app.runtime import Runtime
from app.schemas.policy import (
    AgentIn,
    LookOut,
    OrderOut,
    PoliciesOut,
    PolicyOut,
    ReplayOut,
    RollbackOut,
    TrainingOut,
    TrialOut,
)
from app.schemas.responses import response_of
from app.training.processes import Trainings
from policy.decide import REPLAYED
from policy.verdict import trial_of
from retrieval.database.rows import AnyRow
from retrieval.errors import NotFound
from retrieval.pages import listing
from retrieval.ranking.policies import name_of
from writer.replays.profile_replay import stored_replay
from writer.replays.telling_words import telling_words
from writer.run import AgentKey
from writer.training import decision_log, lifecycle

router = APIRouter(prefix="/v1/policy", tags=["policy"], responses=DOCUMENTED, route_class=BodyRoute)


@router.get("")
async def get_policy(agent: Annotated[AgentKey, Query()], parts: Parts, caller: Caller) -> PoliciesOut:
    """Returns every version of the profile's policy with its metrics and verdict, the newest first."""
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        rows = (await connection.execute(lifecycle.versions(caller.user_sub, agent))).all()
        rewarded = (await connection.execute(decision_log.rewarded(caller.user_sub, agent))).scalar_one()
        profile = (await connection.execute(listing.one_profile(caller.user_sub, agent))).one_or_none()
        replayed = await _replay(connection, parts, caller.user_sub, agent)
        with_and_without = await compared(connection, caller.user_sub, agent, datetime.now(UTC))
    learns = profile is not None and profile.learning
    serving = next((name_of(row.version) for row in rows if row.status == "serving"), REPLAYED)
    return PoliciesOut(
        serving=serving if learns else REPLAYED,
        replay=replayed,
        compared=with_and_without,
        rewarded_decisions=rewarded,
        policies=[_shown(row) for row in rows],
    )


async def _replay(connection: AsyncConnection, parts: Runtime, user_sub: str, agent: str) -> ReplayOut | None:
    found = await stored_replay(connection, user_sub, agent)
    if found is None:
        return None
    orders = [response_of(OrderOut, tally, order=name) for name, tally in found.tallies.items()]
    telling = await telling_words(connection, parts.keyring, user_sub, agent, found.fit)
    return response_of(ReplayOut, found, sentence=found.sentence(), orders=orders, telling_words=telling)


def _shown(row: AnyRow) -> PolicyOut:
    shown = PolicyOut.model_validate(row, from_attributes=True)
    trial = trial_of(row.verdict)
    if trial is None:
        return shown
    looks = [
        response_of(LookOut, look, difference=name) for name, course in trial.courses.items() for look in course.looks
    ]
    days = trial.more_days(datetime.now(UTC) - row.created_at)
    prospects = response_of(TrialOut, trial.outlook, decisions=trial.decisions, more_days=days, looks=looks)
    return shown.model_copy(update={"trial": prospects})


@router.post("/train", status_code=202, responses=raises(NotFound))
async def train_policy(wanted: AgentIn, request: Request, parts: Parts, caller: Caller) -> TrainingOut:
    """Starts a training of this profile in a separate process; ``GET /v1/policy`` shows its result."""
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        if (await connection.execute(listing.one_profile(caller.user_sub, wanted.agent))).one_or_none() is None:
            raise NotFound("no such profile")
    trainings: Trainings = request.app.state.trainings
    return TrainingOut(status=trainings.start(caller.user_sub, wanted.agent))


@router.post("/rollback", responses=raises(NotFound))
async def roll_back_policy(wanted: AgentIn, parts: Parts, caller: Caller) -> RollbackOut:
    """Takes the serving policy out of service and ends a trial; the order that replay chose serves."""
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        version = await lifecycle.roll_back(connection, caller.user_sub, wanted.agent, actor=caller.actor)
    return RollbackOut(version=version)
