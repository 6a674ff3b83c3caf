"""The experiment in numbers: differences, verdicts, means of every arm, prices."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from math import isfinite, nan
from statistics import median
from typing import TypedDict

from app.demo.compare import Difference
from examples.experiment.arm_summary import ArmSummary, mean, summary
from examples.experiment.episode import Episode
from examples.experiment.paired import (
    Pair,
    break_even,
    of_a_kind,
    paired,
    rating_won,
    running_balance,
    steps_change,
    success_points,
    tokens_change,
)
from examples.experiment.prediction import Prediction
from examples.experiment.reflection import Reflection
from examples.world import Adapter, Size

_WITHOUT = ("practice without", "test, K = 0")
"""The arms without memory, of practice and of the test."""
KEPT = "new rules, kept"
EARLY, LATE = range(2, 5), range(5, 11)
"""Places of tasks within their kind, counted from 1, whose gains are compared."""

Matrix = Mapping[str, Sequence[Episode]]
"""Episodes of all test tasks, by the family of the bank."""


class Cell(TypedDict):
    """Results of one family's test tasks with one family's bank."""

    steps_change: float | None
    success_points: float | None
    injected: float | None


class Price(TypedDict):
    """Cost and savings of memory, a task."""

    tokens_added: float | None
    tokens_saved: float | None
    steps_saved: float | None
    pays_from_tokens_a_step: float | None


@dataclass(frozen=True)
class Report:
    """Every episode of an experiment, and the numbers that follow from them."""

    adapter: Adapter
    size: Size
    predictions: Sequence[Prediction]
    practice: tuple[Sequence[Episode], Sequence[Episode]]
    """Practice without memory, and with a memory that is filled on the way."""
    sweep: Mapping[int, Sequence[Episode]]
    """The test with each K, on the bank that practice filled."""
    matrix: Matrix
    experts: Sequence[Episode]
    """The test on a bank of an expert's runs; empty if the environment has none."""
    memory_errors: Sequence[str]
    reflection: Reflection = field(default_factory=Reflection)
    """The test after a change of the rules; empty if the environment has no change."""

    @cached_property
    def tested(self) -> list[Pair]:
        """Returns the test without and with memory."""
        return paired(self.sweep[0], self.sweep[self.size.k])

    @cached_property
    def wrong_family(self) -> list[Pair]:
        """Returns the test without memory, and with the bank of each family but the task's own."""
        return [
            pair
            for family, episodes in self.matrix.items()
            for pair in paired(self.sweep[0], [each for each in episodes if each.family != family])
        ]

    @cached_property
    def balance(self) -> list[int]:
        """Returns tokens saved less added after each task of practice."""
        return running_balance(paired(*self.practice))

    @cached_property
    def steps(self) -> Difference:
        """Returns the change of steps in the test."""
        return self.steps_changed(self.tested)

    @cached_property
    def success(self) -> Difference:
        """Returns the points of success won in the test."""
        return success_points(self.tested, self.size.seed)

    @cached_property
    def kinds(self) -> list[list[Pair]]:
        """Returns the practice without and with memory, by kind of task."""
        return of_a_kind(paired(*self.practice))

    @property
    def gains(self) -> list[float]:
        """Returns the change of steps in practice at the 1st, 2nd … 10th task of a kind."""
        return [self.gain(range(place, place + 1)) for place in range(1, min(self.size.practice, LATE.stop - 1) + 1)]

    def gain(self, places: range) -> float:
        """Returns the change of steps in practice, at these places of the tasks of each kind."""
        return self.steps_changed(
            [pair for kind in self.kinds for pair in kind[places.start - 1 : places.stop - 1]]
        ).value

    @cached_property
    def wrong_success(self) -> Difference:
        """Returns the points of success won with memory of a wrong family."""
        return success_points(self.wrong_family, self.size.seed)

    @cached_property
    def reflected(self) -> list[Pair]:
        """Returns the test after the change, with pinned procedures and with revised ones."""
        return paired(self.reflection.kept, self.reflection.revised)

    @cached_property
    def reflection_success(self) -> Difference:
        """Returns the points of success won by revising."""
        return success_points(self.reflected, self.size.seed)

    @cached_property
    def reflection_steps(self) -> Difference:
        """Returns the change of steps by revising."""
        return self.steps_changed(self.reflected)

    def steps_changed(self, pairs: Sequence[Pair]) -> Difference:
        """Returns the change of steps in these pairs."""
        return steps_change(pairs, self.adapter.budget, self.size.seed)

    @property
    def most_reused(self) -> int:
        """Returns the number of solved test tasks that followed the most useful case or procedure."""
        uses = Counter(case for _, after in self.tested if after.success for case in set(after.reused))
        return max(uses.values(), default=0)

    @cached_property
    def differences(self) -> dict[str, Difference]:
        """Returns the measured numbers that have an interval, by the predictions' keys."""
        return {
            "steps": self.steps,
            "tokens": tokens_change(self.tested, self.size.seed),
            "success": self.success,
            "rating": rating_won(self.tested, self.adapter.budget, self.size.seed),
            "wrong_family": self.wrong_success,
            "reflection": self.reflection_success,
            "reflection_steps": self.reflection_steps,
        }

    @cached_property
    def measured(self) -> dict[str, float]:
        """Returns the measured numbers by the predictions' keys."""
        return {key: each.value for key, each in self.differences.items()} | {
            "reuse": self.most_reused,
            "break_even": median([break_even(running_balance(kind)) for kind in self.kinds] or [nan]),
            "compounding": self.gain(LATE) - self.gain(EARLY),
        }

    @property
    def crashes(self) -> list[Episode]:
        """Returns the episodes in which the environment failed; their pairs do not count."""
        runs = [*self.practice, *self.sweep.values(), *self.matrix.values(), self.experts]
        runs += [self.reflection.kept, self.reflection.revised]
        return [episode for run in runs for episode in run if episode.error]

    def cell(self, bank: str, family: str) -> Cell:
        """Returns the results of the test tasks of ``family`` with the bank of another family, or its own."""
        pairs = paired(self.sweep[0], [each for each in self.matrix[bank] if each.family == family])
        return {
            "steps_change": _number(self.steps_changed(pairs).value),
            "success_points": _number(success_points(pairs, self.size.seed).value),
            "injected": mean([after.injected for _, after in pairs]),
        }

    def as_dict(self) -> dict[str, object]:
        """Returns every number, ready for JSON."""
        return {
            "environment": self.adapter.name,
            "agent": self.adapter.explanation,
            "size": asdict(self.size),
            "budget": self.adapter.budget,
            "min_similarity": self.adapter.min_similarity,
            "predictions": [
                {
                    **asdict(each),
                    "measured": _number(self.measured[each.key]),
                    "verdict": each.verdict(self.measured[each.key]),
                }
                for each in self.predictions
            ],
            "differences": {
                "steps_change": _interval(self.steps),
                "tokens_change": _interval(self.differences["tokens"]),
                "success_points": _interval(self.success),
                "rating": _interval(self.differences["rating"]),
                "wrong_family_success_points": _interval(self.wrong_success),
                "wrong_family_steps_change": _interval(self.steps_changed(self.wrong_family)),
                "reflection_success_points": _interval(self.reflection_success),
                "reflection_steps_change": _interval(self.reflection_steps),
            },
            "price": self.price(),
            "running_balance_tokens": self.balance,
            "steps_change_by_place": [_number(change) for change in self.gains],
            "arms": {name: asdict(arm) for name, arm in self.summaries().items()},
            "transfer": {bank: {family: self.cell(bank, family) for family in self.matrix} for bank in self.matrix},
            "memory_errors": list(self.memory_errors)[:20],
            "environment_failures": [f"{each.task_id}: {each.error}" for each in self.crashes][:20],
            "episodes": {name: [asdict(each) for each in episodes] for name, episodes in self.arms()},
        }

    def summaries(self) -> dict[str, ArmSummary]:
        """Returns the means of every arm, by its name."""
        means = {name: summary(episodes) for name, episodes in self.arms()}
        means["test, wrong family"] = summary([after for _, after in self.wrong_family])
        return {name: replace(arm, tokens_net=_tokens_net(name, arm, means)) for name, arm in means.items()}

    def price(self) -> Price:
        """Returns the cost and savings of memory in the test, a task, and the tokens of a step at which it pays."""
        added = mean([after.tokens_added for _, after in self.tested])
        saved = mean([before.tokens_spent - after.tokens_spent for before, after in self.tested])
        steps = mean([before.steps - after.steps for before, after in self.tested])
        paying = round(added / steps, 1) if added is not None and steps and steps > 0 else None
        return {"tokens_added": added, "tokens_saved": saved, "steps_saved": steps, "pays_from_tokens_a_step": paying}

    def arms(self) -> list[tuple[str, Sequence[Episode]]]:
        """Returns the episodes of every arm, by its name."""
        named = {_WITHOUT[0]: self.practice[0], "practice with": self.practice[1]}
        named |= {f"test, K = {k}": episodes for k, episodes in self.sweep.items()}
        if self.experts:
            named["test, expert's bank"] = self.experts
        if self.reflection.kept:
            named |= {KEPT: self.reflection.kept, "new rules, revised": self.reflection.revised}
        return [*named.items(), *((f"test, bank of {family}", each) for family, each in self.matrix.items())]


def _tokens_net(name: str, arm: ArmSummary, arms: Mapping[str, ArmSummary]) -> float | None:
    """Returns the tokens that an arm with memory saved a task, less those it added, or None if unknown."""
    alone = arms[_WITHOUT[name.startswith("test")]]
    if (
        name in _WITHOUT
        or name.startswith("new rules")
        or alone.tokens_spent is None
        or arm.tokens_spent is None
        or arm.tokens_added is None
    ):
        return None
    return alone.tokens_spent - arm.tokens_spent - arm.tokens_added


def _number(value: float) -> float | None:
    # JSON has neither NaN nor infinity
    return round(value, 4) if isfinite(value) else None


def _interval(difference: Difference) -> dict[str, float | None]:
    return {key: _number(value) for key, value in asdict(difference).items()}
