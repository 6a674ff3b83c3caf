"""Measures a trial's progress, by the verdict that was stored last night."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from policy.course import Course

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Progress:
    """A trial as of the last night.

    Attributes:
        decisions: rewarded ones since it began.
        more: those that it still takes if all stays as it is; 0: it is won; None: it is not to be won.
        chance: probability of a promotion; None: not known yet.
        courses: each look at each difference.
    """

    decisions: int
    more: int | None
    chance: float | None
    courses: Mapping[str, Course]

    def days(self, age: timedelta) -> float | None:
        """Returns how many days that still takes at the rate of a trial of this age."""
        if self.more is None or not self.decisions:
            return None
        return self.more / self.decisions * (age / DAY)

    def sentence(self) -> str:
        """Returns it for a table."""
        if self.more is None:
            return "not to be won" if self.chance is not None else "nobody can say yet"
        chance = "" if self.chance is None else f", promoted with a chance of {self.chance:.0%}"
        return f"{self.more} more decisions{chance}" if self.more else "won"


def trial_of(verdict: Mapping[str, Any] | None) -> Progress | None:
    """Returns how far the trial is; None of a policy that was never judged, or before trials had looks."""
    if not verdict or not verdict.get("outlook"):
        return None
    courses = {name: Course.from_json(course) for name, course in verdict["courses"].items()}
    return Progress(verdict["decisions"], verdict["outlook"]["more"], verdict["outlook"]["chance"], courses)
