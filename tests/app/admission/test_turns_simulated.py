"""Turns in a simulated process: clients share one processor and one database, and the clock is the simulation's."""

import asyncio
import random
import selectors
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from app.admission.turns import NEW_S, Places, Turns

OWN_S, DATABASE_S, SLICE_S = 0.007, 0.004, 0.0015
"""Processor seconds of a request, of its statements, and between two changes from one request to the next."""
CLIENTS, REQUESTS = 16, 60


class Loop(asyncio.SelectorEventLoop):
    """An event loop whose clock jumps to the next timer instead of waiting for it."""

    def __init__(self) -> None:
        self.now = 0.0
        super().__init__(_Jumping(self))

    def time(self) -> float:
        return self.now


class _Jumping(selectors.SelectSelector):
    def __init__(self, loop: Loop) -> None:
        super().__init__()
        self._of = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        self._of.now += max(0.0, timeout or 0.0)
        return []


@dataclass
class Processor:
    used_s: float = 0.0
    _free: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def work(self, seconds: float) -> None:
        while seconds > 0:
            async with self._free:
                spent_s = min(seconds, SLICE_S)
                await asyncio.sleep(spent_s)
                self.used_s += spent_s
                seconds -= spent_s


class Service:
    """A simulated process that answers requests in the turns that it gives."""

    def __init__(self) -> None:
        self.clock = asyncio.get_running_loop().time
        self._own, self._database = Processor(), Processor()
        self._turns = Turns(Places(wait_s=60.0), self.clock, lambda: self._own.used_s)
        self._draw = random.Random(1)

    async def ask(self, user: str) -> float:
        """Returns the seconds until the answer."""
        began, size = self.clock(), self._draw.uniform(0.7, 1.3)
        turn = await self._turns.enter(user)
        await self._own.work(OWN_S / 2 * size)
        await self._database.work(DATABASE_S * size)
        await self._own.work(OWN_S / 2 * size)
        self._turns.leave(turn)
        return self.clock() - began


def simulated(main: Callable[[], Coroutine[Any, Any, float]]) -> float:
    with asyncio.Runner(loop_factory=Loop) as runner:
        return runner.run(main())


def requests_a_second(whose: Callable[[int, int], int]) -> float:
    async def main() -> float:
        service = Service()

        async def client(number: int) -> None:
            for place in range(REQUESTS):
                await service.ask(f"user-{whose(number, place)}")

        await asyncio.gather(*map(client, range(CLIENTS)))
        return CLIENTS * REQUESTS / service.clock()

    return simulated(main)


def late(*, flooded: bool) -> float:
    """Returns the 95th percentile of the seconds that a user waits who asks now and then."""

    async def main() -> float:
        service = Service()

        async def floods() -> None:
            while True:
                await service.ask("flood")

        others = [asyncio.create_task(floods()) for _ in range(40 if flooded else 0)]
        times = []
        while len(times) < 200:
            seconds = await service.ask("guest")
            await asyncio.sleep(0.05)
            if service.clock() > 2 * NEW_S:
                times.append(seconds)
        for other in others:
            other.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        return sorted(times)[190]

    return simulated(main)


def test_users_who_come_one_after_another_get_as_many_answers_as_users_who_come_at_once():
    at_once = requests_a_second(lambda client, _place: client)
    for each in (3, 5, 10):
        assert requests_a_second(lambda _client, place, each=each: place // each) > 0.95 * at_once


def test_one_user_gets_as_many_answers_as_many_users():
    at_once = requests_a_second(lambda client, _place: client)
    assert requests_a_second(lambda _client, _place: 0) > 0.95 * at_once


def test_a_user_who_asks_now_and_then_and_is_not_new_waits_hardly_longer_beside_a_flood():
    assert late(flooded=True) < 1.15 * late(flooded=False)
