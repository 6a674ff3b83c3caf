"""Texts of the console for the short words of the API, read from ``words.toml``, and the menu."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

from policy.reasons import Reason
from retrieval.patterns import read
from retrieval.tables.kinds import Abstraction, AnalystChoice, Rewrite, SummaryChoice
from writer.replays.profile_replay import SPOKEN

_TEXTS: dict[str, Any] = read("app.console", "words.toml")
REASONS: dict[Reason, str] = _TEXTS["reasons"]
LABELS: dict[str, str] = _TEXTS["labels"]
FINDING_KINDS: dict[str, str] = _TEXTS["finding_kinds"]
STANDINGS: dict[str, str] = _TEXTS["standings"]
TERMS: dict[str, str] = _TEXTS["terms"]
CHECKS: dict[str, str] = _TEXTS["checks"]
ESTIMATED: dict[str, str] = _TEXTS["estimated"]
KNOWN: dict[str, str] = _TEXTS["known"]
DELETES: dict[str, str] = _TEXTS["deletes"]
ORDERS = {name: spoken.capitalize() for name, spoken in SPOKEN.items()}
"""Orders that a replay compares, as the console's tables name them."""
TERMS_SAY = "the case's place in the order used for this agent, and the learned policy's correction"

Kind = Literal["whole", "part", "switch", "choice", "tools"]


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a profile as a form field.

    Attributes:
        says: explanation of the setting in one sentence, shown below the field.
        kind: type of the field: a whole number, a number, a switch, one of ``choices``, or names of tools with their
            kinds.
        may_be_empty: true if an empty field is a value; ``says`` explains it.
    """

    name: str
    label: str
    says: str
    kind: Kind
    may_be_empty: bool = False

    @property
    def choices(self) -> tuple[str, ...]:
        """Values of a choice, as the API takes them."""
        return get_args(_CHOICES[self.name])


_CHOICES = {
    "session_summary": SummaryChoice,
    "rewrite": Rewrite,
    "abstraction": Abstraction,
    "analyst": AnalystChoice,
}
SETTINGS = {topic: [Setting(**each) for each in settings] for topic, settings in _TEXTS["settings"].items()}
"""Settings of a profile, by topic."""

MENU, BANK_MENU = (
    [(page, name, tuple(beginnings) or (page,)) for page, name, *beginnings in _TEXTS["menu"][menu]]
    for menu in ("main", "bank")
)
"""Menu items: page, name, and prefixes of the paths that belong to it."""
PROBLEMS = {int(status): heading for status, heading in _TEXTS["problems"].items()}


def is_in(path: str, beginnings: tuple[str, ...]) -> bool:
    """Returns whether a path belongs to a menu item with these prefixes."""
    return path in beginnings or any(path.startswith(each) for each in beginnings if each != "/console")


def section(path: str) -> str:
    """Returns the page of the menu that a path belongs to."""
    return next((page for page, _, beginnings in MENU if is_in(path, beginnings)), "/console")


COUNTED = frozenset(name for name in CHECKS if name == "decisions" or name.startswith("effective"))
"""Checks of the gate that pass once there are enough decisions or queries."""
