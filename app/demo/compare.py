"""Casebank beside the simplest memory that does well: paired differences over the same tasks, and what they prove."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from app.demo.arms import Arm, Stream, TaskRecord
from app.demo.difference import Difference, Pairs, absolute, bootstrap, relative

STEPS_AIM = -0.20
"""Change of the steps, or …"""
SUCCESS_AIM = 10.0
"""… points of success that casebank has to be better by, with an interval that leaves out nothing at all."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One arm against its rival: steps as a change (-0.2: a fifth fewer), success and first tries in points."""

    steps: Difference
    success: Difference
    first_try: Difference

    @property
    def proven(self) -> bool:
        """Whether it is better by as much as the aims ask."""
        fewer = self.steps.value <= STEPS_AIM and self.steps.high < 0
        return fewer or (self.success.value >= SUCCESS_AIM and self.success.low > 0)

    @property
    def better(self) -> bool:
        """Whether it takes fewer steps or solves more, by an interval that leaves out nothing at all."""
        return self.steps.high < 0 or self.success.low > 0

    def numbers(self) -> str:
        """Returns the differences with their intervals."""
        return (
            f"steps {_percent(self.steps.value)} (95 %: {_percent(self.steps.low)} to {_percent(self.steps.high)}),"
            f" success {_points(self.success)}, right at the first try {_points(self.first_try)}"
        )

    def sentence(self, arm: str = "casebank") -> str:
        """Returns what the numbers say of an arm beside keyword memory, in words."""
        said = self.numbers()
        verdict = "beats" if self.proven else "does not beat"
        aims = f"aims: {_percent(STEPS_AIM)} of the steps, or {SUCCESS_AIM:+.0f} points of success"
        return f"{arm} {verdict} keyword memory: {said}; {aims}"

    def as_dict(self) -> dict[str, object]:
        """Returns the numbers, ready for JSON."""
        named = {"steps": self.steps, "success_points": self.success, "first_try_points": self.first_try}
        return {name: [round(each, 4) for each in (d.value, d.low, d.high)] for name, d in named.items()}


Contest = Sequence[tuple[int, Arm, Arm]]
"""Seeds of houses, each with its rival and what is compared with it, over the same tasks."""


def compare(streams: Sequence[Stream]) -> Comparison:
    """Returns the comparison of casebank with keyword memory over the streams."""
    return compare_arms([(stream.seed, stream.keywords, stream.casebank) for stream in streams])


def compare_arms(contest: Contest) -> Comparison:
    """Returns the comparison over the houses; the tasks of one family in one house stand or fall together."""
    return Comparison(
        bootstrap(_pairs(contest, lambda record: record.steps), relative),
        bootstrap(_pairs(contest, lambda record: 100.0 * record.success), absolute),
        bootstrap(_pairs(contest, lambda record: 100.0 * record.first_try), absolute),
    )


def _pairs(contest: Contest, value: Callable[[TaskRecord], float]) -> Sequence[Pairs]:
    groups: dict[tuple[int, str], list[tuple[float, float]]] = defaultdict(list)
    for seed, rival, own in contest:
        for before, after in zip(rival.records, own.records, strict=True):
            groups[seed, before.family].append((value(before), value(after)))
    return list(groups.values())


def _percent(change: float) -> str:
    return f"{change:+.0%}"


def _points(difference: Difference) -> str:
    return f"{difference.value:+.0f} points ({difference.low:+.0f} to {difference.high:+.0f})"
