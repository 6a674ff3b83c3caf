"""The world in which an agent tries remembered plans on missions, with a bank of the bot's plans."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from bench.replay.babyai.hands import PLACES, Hands
from bench.replay.babyai.missions import Mission, act, missing, missions
from bench.replay.loops import Plan
from bench.replay.runs import Call, Run

SPARE = 1
"""Number of acts that an agent may waste in a mission."""
OWN_IDEAS = (
    "go_to 1", "pick_up 1", "open 1", "pick_up 1, put_next_to 2", "go_to 1, go_to 2", "go_to 2, go_to 1",
    "open 1, open 2", "open 2, open 1",
)  # fmt: skip
"""Plans that an agent can think of by itself; those with keys and things in the way it must remember."""


@dataclass(slots=True)
class Trying:
    """A mission in progress, which begins again after a plan that failed."""

    mission: Mission
    hands: Hands
    done: list[Call] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Text of the mission."""
        return self.mission.text

    @property
    def kind(self) -> str:
        """Level of the mission."""
        return self.mission.level

    @property
    def budget(self) -> int:
        """Largest number of acts: those of the plan, and a few more."""
        return len(self.mission.plan) + SPARE

    @property
    def error(self) -> None:
        """No error: a mission begins without one."""

    @property
    def solved(self) -> bool:
        """True once the mission is done."""
        return self.hands.solved

    def adapted(self, plan: Plan) -> Plan:
        """Returns the plan as it is, because it names things by their place in the text."""
        return plan

    def act(self, call: Call) -> Call:
        """Does an act."""
        result = self.hands.act(call)
        if result.ok:
            self.done.append(result)
        return result

    def give_up(self) -> None:
        """Begins the mission again."""
        self.hands, self.done = self.mission.hands(), []

    def known(self) -> Sequence[Plan]:
        """Returns plans that an agent can think of by itself."""
        return [
            tuple(
                act(*(PLACES[int(word) - 1] if word.isdigit() else word for word in each.split()))
                for each in idea.split(", ")
            )
            for idea in OWN_IDEAS
        ]


@dataclass(frozen=True, slots=True)
class MissionWorld:
    """BabyAI's missions as a world, with a bank of the bot's plans."""

    tasks: int = 100
    expert_runs: int = 100

    @property
    def name(self) -> str:
        """Name, for reports."""
        return "babyai"

    @property
    def skipped(self) -> str:
        """Reason for which this machine cannot play; "" if it can."""
        return missing()

    def demonstrations(self, seed: int) -> Sequence[Run]:
        """Returns the bot's runs of other missions."""
        return [
            Run(each.text, each.plan, succeeded=True, day=0, kind=each.level)
            for each in missions(f"{seed}:{self.name}:expert", self.expert_runs)
        ]

    def attempts(self, seed: int) -> Iterator[Trying]:
        """Yields the missions of a seed."""
        for each in missions(f"{seed}:{self.name}:loop", self.tasks):
            yield Trying(each, each.hands())
