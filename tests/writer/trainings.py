"""Logs to learn from, trainings of them, and the policies that come of it."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select

from app.postgres.pools import service_database
from policy.decide import CANDIDATE, DEFAULT, Budget, Policy
from policy.examples import Examples
from policy.network import Head
from policy.train import train
from retrieval.database.database import Database
from retrieval.tables.profiles import policies
from tests.logs import TRUTH, Drawn, draw, put
from tests.policies import stored
from tests.writer.conftest import AGENT, Bank
from writer.training import lifecycle
from writer.training.candidates import Demand, Recipe, TrainHeads
from writer.training.nightly import learn
from writer.training.result import TrainingResult

DEFAULT_ALONE: dict[str, Policy | None] = {DEFAULT: None}


EXPLORING = Budget(explore=0.5)


ENOUGH = 140


LITTLE = Demand(decisions=40, fresh=20)


def quick(profiles: Sequence[Examples], seeds: Sequence[int], start: Head) -> list[Head]:
    return train(profiles, seeds, start, (100.0,))


def never(*_: object, **__: object) -> list[Head]:
    raise AssertionError("there is nothing to train")


def seen(count: int = ENOUGH, seed: int = 1) -> list[Drawn]:
    """Decisions of the default, with some exploration."""
    return draw(count, DEFAULT_ALONE, EXPLORING, seed=seed)


async def log(bank: Bank, user: str, drawn: Sequence[Drawn]) -> None:
    await put(bank.database, user, AGENT, drawn)


async def give(bank: Bank, user: str, new: dict[str, Any]) -> int:
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        return await lifecycle.add(connection, user, AGENT, new)


async def learnt(
    bank: Bank, user: str, fit: TrainHeads = quick, demand: Demand | None = None, seed: int = 0
) -> TrainingResult:
    recipe = Recipe(fit, demand or Demand(), seed)
    (found,) = [each async for each in learn(bank.database, recipe, bank.profile(user))]
    return found


async def everybody(bank: Bank, fit: TrainHeads = quick, demand: Demand = LITTLE) -> dict[str, TrainingResult]:
    """Trains every profile as each night does, and returns what became of each user's."""
    return {each.user_sub: each async for each in learn(bank.database, Recipe(fit, demand))}


async def rows(bank: Bank, user: str) -> list[Any]:
    return await bank.read(user, select(policies).where(policies.c.user_sub == user).order_by(policies.c.version))


async def statuses(bank: Bank, user: str) -> list[str]:
    return [row.status for row in await rows(bank, user)]


def meanwhile(url: str, work: Callable[[Database], Coroutine[Any, Any, Any]]) -> TrainHeads:
    """A training during which another process does its work on the same database, once and to its end."""
    done: list[Any] = []

    async def other() -> None:
        async with service_database(url) as database:
            done.append(await work(database))

    def fit(profiles: Sequence[Examples], seeds: Sequence[int], start: Head) -> list[Head]:
        if not done:
            with ThreadPoolExecutor(1) as thread:
                thread.submit(asyncio.run, other()).result()
        return quick(profiles, seeds, start)

    return fit


async def on_trial(
    bank: Bank, user: str, count: int, budget: Budget, *, reversed_truth: bool = False
) -> TrainingResult:
    """Puts the truth on trial, as a candidate, over so many decisions, and returns the verdict."""
    await log(bank, user, [])
    await give(bank, user, stored("candidate", TRUTH.head))
    arms = {DEFAULT: None, CANDIDATE: TRUTH}
    await log(bank, user, draw(count, arms, budget, seed=3, reversed_truth=reversed_truth))
    return await learnt(bank, user, never)


CANARY = Budget(explore=0.0, canary=0.5)


async def give_serving(bank: Bank, user: str) -> None:
    await log(bank, user, [])
    await give(bank, user, stored("serving"))
    await log(bank, user, seen())
