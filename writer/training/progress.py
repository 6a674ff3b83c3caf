"""Tells the progress of a policy's trial, from the verdict that the last nightly training stored."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pydantic import TypeAdapter

from policy.course import Course

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of a policy's trial at the last nightly training.

    Attributes:
        decisions: number of rewarded decisions since the trial began.
        more: rewarded decisions that the trial still needs if rewards stay as they are; 0: it is won; None: it cannot
            be won, or the number is unknown.
        chance: probability that the policy is promoted, 0 to 1; None: unknown yet.
        courses: for each compared policy, the estimated difference in reward at each look at the trial.
    """

    decisions: int
    more: int | None
    chance: float | None
    courses: Mapping[str, Course]

    def days(self, age: timedelta) -> float | None:
        """Returns the days that a trial of this age still takes at its rate of decisions so far; None: unknown."""
        if self.more is None or not self.decisions:
            return None
        return self.more / self.decisions * (age / DAY)

    def sentence(self) -> str:
        """Returns the progress in a few words, for a table."""
        if self.more is None:
            return "not to be won" if self.chance is not None else "nobody can say yet"
        chance = "" if self.chance is None else f", promoted with a chance of {self.chance:.0%}"
        return f"{self.more} more decisions{chance}" if self.more else "won"


def trial_of(verdict: Mapping[str, Any] | None) -> Progress | None:
    """Returns the progress of a trial, from its stored verdict; None: there is none, or an older version stored it."""
    if not verdict or not verdict.get("outlook"):
        return None
    courses = TypeAdapter(dict[str, Course]).validate_python(verdict["courses"])
    return Progress(verdict["decisions"], verdict["outlook"]["more"], verdict["outlook"]["chance"], courses)
