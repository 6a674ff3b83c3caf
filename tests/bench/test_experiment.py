"""The experiment's numbers against their aims."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bench.experiment import measure, rows_of
from examples.world import EnvironmentMissing, Size
from tests.examples.experiment.riddles import Riddle, Riddles, Room, run
from tests.service import Service


async def test_the_benchmark_sets_the_numbers_against_their_aims(service: Service):
    report = await run(service, Riddles(), ks=(0, 8))
    rows = {row.name.removeprefix("experiment riddles: "): row for row in rows_of(report)}
    assert rows["change of steps"].value == report.measured["steps"]
    assert rows["change of steps"].reached
    assert rows["success won"].value == pytest.approx(report.measured["success"] / 100)
    assert rows["success won, wrong family"].reached
    assert "at K = 8" in rows["break-even"].detail
    assert rows["success won, expert's bank"].reached is None


async def test_the_benchmark_says_what_it_had_to_skip_and_what_broke(service: Service):
    class Absent(Riddles):
        @asynccontextmanager
        async def environment(self) -> AsyncIterator[Room]:
            raise EnvironmentMissing("no room")
            yield self.room()

    class Broken(Room):
        async def reset(self, task: Riddle) -> None:
            raise OSError(f"no such room: {task.id}")

    class Breaking(Riddles):
        room, size = Broken, Size(practice=1, test=1, ks=(0,))

    client = (await service.user()).http
    (absent,), (broken,) = await measure(Absent(), client), await measure(Breaking(), client)
    assert (absent.name, absent.detail, absent.reached) == ("experiment riddles: SKIPPED", "no room", None)
    assert broken.reached is False
    assert "no such room" in broken.detail
