"""An environment that raises, hangs or never ends has a name and an end; its word alone is success."""

from rich.console import Console

from examples.experiment.tables import print_report
from tests.examples.experiment.riddles import Riddle, Riddles, Room, run
from tests.service import Service


async def test_an_environment_that_raises_is_reported_and_its_pairs_count_nowhere(service: Service):
    class Fragile(Room):
        async def step(self, action: str) -> None:
            if self.task.id == "dog-3":
                raise RuntimeError("the lead broke")
            await super().step(action)

    class Adapter(Riddles):
        room = Fragile

    report = await run(service, Adapter(), practice=2, test=2, ks=(0, 4))
    assert {episode.task_id for episode in report.crashes} == {"dog-3"}
    assert len(report.tested) == 5
    assert len(report.sweep[0]) == 6
    numbers = report.as_dict()
    assert "the lead broke" in numbers["environment_failures"][0]
    assert numbers["arms"]["test, K = 0"]["ended"]["environment failed"] == 1


async def test_an_environment_that_always_raises_proves_and_disproves_nothing(service: Service):
    class Broken(Room):
        async def reset(self, task: Riddle) -> None:
            raise OSError(f"no such room: {task.id}")

    class Adapter(Riddles):
        room = Broken

    report = await run(service, Adapter(), practice=1, test=1, ks=(0,))
    assert {each["verdict"] for each in report.as_dict()["predictions"] if each["key"] != "reuse"} == {"not measured"}
    print_report(report, Console(quiet=True))


async def test_an_environment_that_never_ends_is_ended_by_the_budget(service: Service):
    class Endless(Room):
        async def step(self, action: str) -> None:
            """Keeps no trace, either."""

    class Adapter(Riddles):
        room = Endless

    report = await run(service, Adapter(), practice=1, test=1, ks=(0,))
    assert {episode.ended for episode in report.sweep[0]} == {"out of steps"}


async def test_success_is_the_environment_s_word_not_the_agent_s(service: Service):
    class Stingy(Room):
        async def step(self, action: str) -> None:
            await super().step(action)
            self.reward = 0.9 * self.done

    class Adapter(Riddles):
        room = Stingy

    report = await run(service, Adapter(), practice=1, test=1, ks=(0,))
    assert not any(episode.success for episode in report.sweep[0])
    assert not any(after.reused for _, after in report.tested)  # nor was it retained as one
