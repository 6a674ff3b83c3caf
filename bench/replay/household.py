"""Household games as a world: an agent finds objects and treats them by commands ("heat mug 1 with microwave 1").

Six kinds of tasks as in ALFWorld (Shridhar et al. 2021), written for this benchmark. Tasks of two kinds may name the
same object and place; what tells the kind are words such as "hot" and "two". The agent knows neither where an object
is nor how a task is done: it searches place by place, and takes the ways from its memory.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from bench.replay.loops import Plan
from bench.replay.runs import Call, Run

TASKS, EXPERT_RUNS = 160, 200
COMMANDS = 30
"""Largest number of commands in a game."""
LONGEST_SEARCH = 5
"""Largest number of places that an agent looks into before it finds an object."""

_PLACES = (
    "armchair", "bathtub", "bed", "cabinet", "cart", "coffeetable", "countertop", "desk", "diningtable", "drawer",
    "dresser", "garbagecan", "shelf", "sidetable", "sofa", "stoveburner", "toilet",
)  # fmt: skip
_CLOSED = frozenset(("cabinet", "drawer"))
_OBJECTS = (
    "apple", "book", "bowl", "box", "bread", "candle", "cellphone", "cloth", "cup", "egg", "fork", "keychain", "knife",
    "laptop", "lettuce", "mug", "newspaper", "pan", "pen", "pencil", "pillow", "plate", "pot", "potato", "soapbar",
    "spoon", "spraybottle", "statue", "tomato", "vase", "watch",
)  # fmt: skip
_APPLIANCES = {"clean": "sinkbasin", "heat": "microwave", "cool": "fridge"}
_TEXTS = {
    "put": ("put a {thing} in {place}.", "put some {thing} on {place}.", "find some {thing} and put it in {place}."),
    "light": ("look at {thing} under the desklamp.", "examine the {thing} with the desklamp."),
    "clean": ("clean some {thing} and put it in {place}.", "put a clean {thing} in {place}."),
    "heat": ("heat some {thing} and put it in {place}.", "put a hot {thing} in {place}."),
    "cool": ("cool some {thing} and put it in {place}.", "put a cool {thing} in {place}."),
    "two": ("put two {thing} in {place}.", "find two {thing} and put them in {place}."),
}
_WAYS = {
    "put": ("find", "put"),
    "light": ("find", "use"),
    "two": ("find", "put", "find", "put"),
    **{verb: ("find", verb, "put") for verb in _APPLIANCES},
}
"""Acts that solve the tasks of each kind, in order."""


def _said(command: str) -> Call:
    return Call("act", {"command": command}, "done", ok=True)


@dataclass(slots=True)
class Game:
    """A game in progress; a way that failed leaves its objects where they are, and the next begins with a search."""

    kind: str
    text: str
    thing: str
    place: str
    rng: random.Random
    done: list[Call] = field(default_factory=list)
    acts: list[str] = field(default_factory=list)
    """Acts so far on the game's own object, in order."""

    @property
    def budget(self) -> int:
        """Largest number of commands."""
        return COMMANDS

    @property
    def error(self) -> None:
        """No error: a game begins without one."""

    @property
    def solved(self) -> bool:
        """True once the last acts are the right way."""
        way = _WAYS[self.kind]
        return tuple(self.acts[-len(way) :]) == way

    def adapted(self, plan: Plan) -> Plan:
        """Returns the plan's acts with this game's object and place, and with a search of its own for each object."""
        acts = (_act_of(str(call.input.get("command", ""))) for call in plan if isinstance(call.input, dict))
        return self.commands([act for act in acts if act])

    def commands(self, acts: Sequence[str]) -> Plan:
        """Returns the commands for these acts."""
        calls: list[Call] = []
        for act in acts:
            if act == "find":
                looked_into = self.rng.sample(_PLACES, self.rng.randint(1, LONGEST_SEARCH))
                for place in looked_into:
                    calls += self._at(place)
                calls.append(_said(f"take {self._one} from {looked_into[-1]} 1"))
            elif act == "put":
                calls += [*self._at(self.place), _said(f"put {self._one} in/on {self.place} 1")]
            elif act == "use":
                calls += [*self._at("desk"), _said("use desklamp 1")]
            else:
                appliance = _APPLIANCES[act]
                calls += [*self._at(appliance), _said(f"{act} {self._one} with {appliance} 1")]
        return tuple(calls)

    @property
    def _one(self) -> str:
        return f"{self.thing} {self.rng.randint(1, 3)}"

    def _at(self, place: str) -> list[Call]:
        number = self.rng.randint(1, 4)
        opened = [_said(f"open {place} {number}")] if place in _CLOSED else []
        return [_said(f"go to {place} {number}"), *opened]

    def act(self, call: Call) -> Call:
        """Does a command."""
        if act := _act_of(str(call.input["command"])) if isinstance(call.input, dict) else "":
            self.acts.append(act)
        self.done.append(call)
        return call

    def give_up(self) -> None:
        """Begins the way again: what was done does not count for the next."""
        self.done, self.acts = [], []

    def known(self) -> Sequence[Plan]:
        """Returns the ways that need no appliance; the others an agent must remember."""
        return [self.commands(_WAYS[kind]) for kind in ("put", "light", "two")]


def _act_of(command: str) -> str:
    """Returns the act of a command; empty for a step on the way to one."""
    verb = command.partition(" ")[0]
    return "find" if verb == "take" else verb if verb in {"put", "use", *_APPLIANCES} else ""


def games(seed: str, count: int) -> Iterator[Game]:
    """Yields so many games, drawn by seed."""
    rng = random.Random(seed)
    for _ in range(count):
        kind, thing, place = rng.choice(list(_TEXTS)), rng.choice(_OBJECTS), rng.choice(_PLACES)
        text = rng.choice(_TEXTS[kind]).format(thing=thing, place=place)
        yield Game(kind, text, thing, place, random.Random(rng.random()))


@dataclass(frozen=True, slots=True)
class HouseholdWorld:
    """Household games, with a bank of an expert's runs."""

    tasks: int = TASKS
    expert_runs: int = EXPERT_RUNS

    @property
    def name(self) -> str:
        """Name, for reports."""
        return "household"

    def demonstrations(self, seed: int) -> Sequence[Run]:
        """Returns the expert's runs of other games."""
        drawn = games(f"{seed}:{self.name}:expert", self.expert_runs)
        return [
            Run(each.text, each.commands(_WAYS[each.kind]), succeeded=True, day=0, kind=each.kind) for each in drawn
        ]

    def attempts(self, seed: int) -> Iterator[Game]:
        """Yields the games of a seed."""
        return games(f"{seed}:{self.name}:loop", self.tasks)
