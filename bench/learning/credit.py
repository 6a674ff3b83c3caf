"""Benchmark 10: credit for the outcome of a slate, in simulated reuse with slates of four and a known truth.

An agent is shown four cases and follows one: the first that helps, if it can tell, or any. Its run then agrees with the
cases of the same stored answer. Three kinds of credit are compared on the same stream: equal for all places, by the
run's plan (``policy.examples.shared_credit``), and by the case that the agent names. Each serves the untrained order,
and learns by its own credit; no policy is trained.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from bench.learning.banking import Corpus, Scenario
from bench.learning.learner import Prepared, Service, remembered
from bench.learning.memory import Memory, alike
from bench.learning.reuse import Stage, stage
from bench.learning.rules import interval
from bench.measure import Measurement
from policy.default import posterior_mean
from policy.examples import shared_credit
from policy.logged import Floats, Ints
from policy.slate import Slate

SEEDS = (0, 1, 2)
PLACES = 4
MARKS = (0, 250, 500, 750, 1_000, 1_500, 2_000, 3_000)
EVERY = 3
"""Step through the test file's questions."""
INERT_AIM = 2.0
"""Points by which the record may raise a case that did not help."""
HALF = 0.5
"""Share of the decisions that equal credit needs to separate helpers equally well."""


class Credit(Enum):
    """Ways in which places share an outcome; the value is the label in the table."""

    ALIKE = "equal for all places"
    PLAN = "by the plan of its run"
    NAMED = "by the case that it names"


class Agent(Enum):
    """The case that the agent follows; the value is the label in the table."""

    KNOWS = "the first that helps"
    ANY = "any"


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """A world with an agent; for the same decision and slate it follows the same place."""

    stage: Stage
    seed: int
    agent: Agent

    def followed(self, now: int, slate: Slate) -> int:
        """Returns the place that the agent follows, any place if no case helps."""
        helps = self._answers(now, slate) == self.stage.world.stream.intents[now]
        if self.agent is Agent.KNOWS and helps.any():
            return int(helps.argmax())
        return int(np.random.default_rng([self.seed, now]).integers(len(slate)))

    def outcome(self, now: int, slate: Slate) -> float:
        """Returns the feedback on the case that the agent followed, flips included; an empty slate fails."""
        helped = bool(slate) and self._helped(now, slate)
        return float(helped != self.stage.world.flipped[now])

    def shares(self, credit: Credit, now: int, slate: Slate) -> Floats:
        """Returns each place's share of the outcome, (k,)."""
        if not slate or credit is Credit.ALIKE:
            return alike(slate)
        place, answers = self.followed(now, slate), self._answers(now, slate)
        used = np.arange(len(slate))[None] == place
        agreed = (answers == answers[place])[None].astype(np.float64)
        named = np.array([credit is Credit.NAMED])
        return np.asarray(shared_credit(np.ones_like(used), used, named, agreed)[0], np.float64)

    def _helped(self, now: int, slate: Slate) -> bool:
        place = self.followed(now, slate)
        return bool(self._answers(now, slate)[place] == self.stage.world.stream.intents[now])

    def _answers(self, now: int, slate: Slate) -> Ints:
        bank = self.stage.world.bank
        return np.asarray(bank.answers[self.stage.stream[now].case[list(slate)]])


@dataclass(frozen=True, slots=True)
class Point:
    """Measures on the test questions after a number of decisions; chances from 0 to 1.

    Attributes:
        helpers, others: mean expected reward of the candidates that would help the query, and of those that would not.
        earned: (questions,), whether the first answer is right.
    """

    helpers: float
    others: float
    earned: Floats

    @property
    def gap(self) -> float:
        """Returns the difference that the record makes between helpers and others."""
        return self.helpers - self.others


Curve = Mapping[int, Sequence[Point]]
"""Points by number of decisions, one for each seed."""


def run(
    corpus: Corpus, scenario: Scenario | None = None, seeds: Sequence[int] = SEEDS, marks: Sequence[int] = MARKS
) -> list[Measurement]:
    """Returns the table of both agents."""
    stages = [stage(corpus, scenario or Scenario(), seed) for seed in seeds]
    rows: list[Measurement] = []
    for agent in Agent:
        streams = [Stream(each, seed, agent) for each, seed in zip(stages, seeds, strict=True)]
        curves = {credit: _curve(streams, credit, marks) for credit in Credit}
        rows += _rows(agent, curves, max(marks))
    return rows


def _curve(streams: Sequence[Stream], credit: Credit, marks: Sequence[int]) -> Curve:
    curve: dict[int, list[Point]] = {mark: [] for mark in marks}
    for stream in streams:
        each = stream.stage

        def shares(now: int, slate: Slate, stream: Stream = stream) -> Floats:
            return stream.shares(credit, now, slate)

        rng = np.random.default_rng([stream.seed, PLACES])
        service = Service(each.stream, stream.outcome, each.effects, PLACES, rng, shares=shares)
        for mark in marks:
            service.advance(mark)
            curve[mark].append(_point(each, remembered(each.effects, service.log)))
    return curve


def _point(each: Stage, memory: Memory) -> Point:
    works, scenes = each.world.test_works()[::EVERY], each.test[::EVERY]
    expected = np.stack([posterior_mean(memory.features(scene)) for scene in scenes])
    scores = Prepared.of(memory, scenes).scores(None).astype(np.float64)
    right = works[np.arange(len(scenes)), scores.argmax(axis=1)].astype(np.float64)
    return Point(float(expected[works].mean()), float(expected[~works].mean()), right)


def _rows(agent: Agent, curves: Mapping[Credit, Curve], last: int) -> Iterator[Measurement]:
    name = f"credit, agent follows {agent.value}"
    detail = f"{last:,} decisions, slates of {PLACES}, {len(curves[Credit.ALIKE][0])} seeds"
    for credit, curve in curves.items():
        rise = {what: 100 * float(np.mean(_changes(curve, last, what))) for what in ("others", "helpers")}
        aim = INERT_AIM if credit is Credit.PLAN else None
        inert = f"{name}, {credit.value}: what did not help, by its record"
        yield Measurement(inert, rise["others"], "points", f"since the first decision, {detail}", aim)
        yield Measurement(f"{name}, {credit.value}: what helps, by its record", rise["helpers"], "points", detail)
        right = float(np.mean([point.earned.mean() for point in curve[last]]))
        yield Measurement(f"{name}, {credit.value}: first answer right", right, "", detail)
    for credit in (Credit.PLAN, Credit.NAMED):
        pairs = zip(curves[credit][last], curves[Credit.ALIKE][last], strict=True)
        gained = interval([own.earned - other.earned for own, other in pairs])
        what = f"{name}: first answer right, {credit.value} - {Credit.ALIKE.value}"
        yield Measurement(what, gained.estimate, "", f"paired, {detail}", interval=(gained.low, gained.high))
        needed = _needed(curves[credit], _gap(curves[Credit.ALIKE], last))
        what = f"{name}: decisions until helpers are separated, {credit.value} / {Credit.ALIKE.value}"
        yield Measurement(
            what, needed / last, "", f"as well as after {detail}", HALF if credit is Credit.PLAN else None
        )


def _changes(curve: Curve, mark: int, what: str) -> list[float]:
    return [getattr(now, what) - getattr(first, what) for now, first in zip(curve[mark], curve[0], strict=True)]


def _gap(curve: Curve, mark: int) -> float:
    return float(np.mean([point.gap for point in curve[mark]]))


def _needed(curve: Curve, gap: float) -> float:
    """Returns the first mark at which the record separates helpers as well, or infinity."""
    return next((float(mark) for mark in curve if _gap(curve, mark) >= gap), float("inf"))
