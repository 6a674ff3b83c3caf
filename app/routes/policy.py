"""Routes for learned policies: list them with their verdicts, start a training, roll back."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal

from fastapi import Request
from pydantic import BaseModel, Field, JsonValue

from app.edge.dependencies import Agent, Caller, Parts
from app.edge.routers import api_router
from app.impact.report import compared
from app.schemas.bank import AgentIn
from app.schemas.fields import Real
from app.schemas.responses import response_of
from app.training.processes import Trainings
from policy.decide import REPLAYED
from policy.verdict import ENDED, trial_of
from retrieval.database.rows import AnyRow
from retrieval.pages import listing
from retrieval.ranking.policies import name_of
from retrieval.tables.kinds import PolicyStatus
from writer.replays.profile_replay import stored_replay
from writer.replays.telling_words import telling_words
from writer.training import decision_log, lifecycle


class LookOut(BaseModel):
    """One interim comparison of two policies in a trial: the difference of their rewards, and whether it sufficed."""

    difference: str = Field(
        description="compared policies: `candidate - default`, `candidate - serving` or `default - serving`"
    )
    decisions: int = Field(description="number of rewarded decisions since the start of the trial, at this look")
    z: float = Field(description="difference in standard errors above zero")
    bound: float = Field(description="value of z that was required")
    passed: bool


class TrialOut(BaseModel):
    """The state of a trial after the gate's last look."""

    decisions: int = Field(description="rewarded decisions since the trial began")
    more: int | None = Field(
        description="rewarded decisions still needed at the present rate; null: out of reach, or not known yet"
    )
    more_days: float | None = Field(description="days still needed, at the rate of this trial so far")
    chance: float | None = Field(
        description="probability of promotion before the trial ends; null: cannot be estimated yet"
    )
    looks: list[LookOut]


class PolicyOut(BaseModel):
    """One version of a profile's learned policy, with its metrics and verdict."""

    version: int
    status: PolicyStatus
    feature_version: int
    blend: Real = Field(description="weight of the learned part in the order: n / (n + n0)")
    decisions: int = Field(description="number of rewarded decisions it was trained on")
    metrics: dict[str, JsonValue]
    verdict: dict[str, JsonValue] | None = Field(description="verdict of the gate, with every number and reason")
    trial: TrialOut | None = Field(
        default=None, description="state of its trial; null: the gate has not looked at it yet"
    )
    created_at: datetime
    promoted_at: datetime | None
    retired_at: datetime | None


class OrderOut(BaseModel):
    """An order of cases, and how well it would have ranked the agent's own runs."""

    order: str = Field(description="name of the order; choice: in turn the order that had done best so far")
    first: float = Field(description="share of runs for which a plan that worked would have stood first, 0 to 1")
    low: float = Field(description="lower end of the 95 % interval of that share; 0: not computed yet")
    high: float = Field(description="upper end of the 95 % interval of that share; 1: not computed yet")
    ndcg: float = Field(description="mean nDCG@4 of the agreement with the plan that worked, 0 to 1")


class ReplayOut(BaseModel):
    """A replay: the task of each run that went well was searched for again among the runs before it."""

    sentence: str = Field(description="the result in one sentence")
    runs: int = Field(description="newest cases that were replayed")
    questions: int = Field(description="runs among them that went well and that an earlier run answers")
    serves: str = Field(description="order that ranks the cases from now on")
    orders: list[OrderOut]
    telling_words: list[str] = Field(description="words that tell the agent's kinds of tasks apart, the best first")
    created_at: datetime


class PoliciesOut(BaseModel):
    """The policies of a profile, the newest first; ``serving`` names the one that most decisions follow."""

    serving: str
    replay: ReplayOut | None = Field(description="replay of the agent's own runs; null: none was made yet")
    compared: str = Field(
        description="steps and failed calls of runs with and without a case, in a sentence, or how many are missing"
    )
    rewarded_decisions: int = Field(
        description="number of rewarded decisions in the log; the first policy is trained at 100"
    )
    policies: list[PolicyOut]


class TrainingOut(BaseModel):
    """The status of a training."""

    status: Literal["started", "running"] = Field(
        description="`running`: the request started none, because a training of one of the user's agents waits or runs"
    )


class RollbackOut(BaseModel):
    """The version that was taken out of service; the order that replay chose replaces it."""

    version: int


router = api_router("policy", "/v1/policy")


@router.get("")
async def get_policy(agent: Agent, parts: Parts, caller: Caller) -> PoliciesOut:
    """Returns every version of the profile's policy with its metrics and verdict, the newest first."""
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        rows = (await connection.execute(lifecycle.versions(caller.user_sub, agent))).all()
        rewarded = (await connection.execute(decision_log.rewarded(caller.user_sub, agent))).scalar_one()
        profile = (await connection.execute(listing.one_profile(caller.user_sub, agent))).one_or_none()
        replay = None
        if (replayed := await stored_replay(connection, caller.user_sub, agent)) is not None:
            replay = response_of(
                ReplayOut,
                replayed,
                sentence=replayed.sentence(),
                orders=[response_of(OrderOut, tally, order=name) for name, tally in replayed.tallies.items()],
                telling_words=await telling_words(connection, parts.keyring, caller.user_sub, agent, replayed.fit),
            )
        with_and_without = await compared(connection, caller.user_sub, agent, datetime.now(UTC))
    learns = profile is not None and profile.learning
    serving = next((name_of(row.version) for row in rows if row.status == "serving"), REPLAYED)
    return PoliciesOut(
        serving=serving if learns else REPLAYED,
        replay=replay,
        compared=with_and_without,
        rewarded_decisions=rewarded,
        policies=[_shown(row) for row in rows],
    )


def _shown(row: AnyRow) -> PolicyOut:
    shown = PolicyOut.model_validate(row, from_attributes=True)
    trial = trial_of(row.verdict)
    if trial is None:
        return shown
    if row.status != "candidate" and trial.outlook.more:  # it was ended by hand
        trial = replace(trial, outlook=ENDED)
    looks = [
        response_of(LookOut, look, difference=name) for name, course in trial.courses.items() for look in course.looks
    ]
    days = trial.more_days(datetime.now(UTC) - row.created_at)
    prospects = response_of(TrialOut, trial.outlook, decisions=trial.decisions, more_days=days, looks=looks)
    return shown.model_copy(update={"trial": prospects})


@router.post("/train", status_code=202)
async def train_policy(wanted: AgentIn, request: Request, parts: Parts, caller: Caller) -> TrainingOut:
    """Starts a training of this profile in a separate process; ``GET /v1/policy`` shows its result."""
    await parts.admission.of_agent(caller, "writes", wanted.agent)
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        await listing.known_profile(connection, caller.user_sub, wanted.agent)
    trainings: Trainings = request.app.state.trainings
    return TrainingOut(status=trainings.start(caller.user_sub, wanted.agent))


@router.post("/rollback")
async def roll_back_policy(wanted: AgentIn, parts: Parts, caller: Caller) -> RollbackOut:
    """Takes the serving policy out of service and ends a trial; the order that replay chose serves."""
    await parts.admission.of_agent(caller, "writes", wanted.agent)
    async with parts.database.as_user(caller.user_sub, caller.authorised_at) as connection:
        version = await lifecycle.roll_back(connection, caller.user_sub, wanted.agent, actor=caller.actor)
    return RollbackOut(version=version)
