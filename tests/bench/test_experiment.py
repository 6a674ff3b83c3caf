"""The benchmark of the experiment where it has nothing to compare."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bench.experiment import measure
from examples.world import EnvironmentMissing, Size
from tests.examples.experiment.riddles import Riddle, Riddles, Room
from tests.service import Service


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
