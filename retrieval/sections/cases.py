"""The sections of cases: those on the slate, and further runs beside it."""

from collections.abc import Sequence
from dataclasses import dataclass

from retrieval.sections.context import Block, Draft, Part, leading
from retrieval.sections.quoting import quoted, quoted_list
from retrieval.tables.kinds import has_failed, is_trusted
from retrieval.text import shortened

OTHERS = "Further runs near this task: one that failed, or other ways in which it was done.\n"
_FATES = {"aborted": " (broken off: it shows nothing)", "unknown": " (nobody said how it ended)"}


@dataclass(frozen=True, slots=True)
class Remembered:
    """The fields of a case that the text quotes."""

    task: str
    plan: Sequence[str]
    outcome: str
    reward: float | None
    reward_source: str | None = None

    @property
    def fate(self) -> str:
        """Remark on what outcome and reward together say of the run, for a reader who must not misread either."""
        failed, judged = has_failed(self.outcome, self.reward, self.reward_source), is_trusted(self.reward_source)
        if failed and self.outcome == "failure":
            return " (this run failed: what it did is what to avoid)"
        if failed:
            return " (but it was judged to have failed: what it did is what to avoid)"
        if self.outcome == "failure" and judged and self.reward is not None:
            return " (but it was judged to have gone well)"
        return _FATES.get(self.outcome, "")


@dataclass(frozen=True, slots=True)
class Room:
    """The length of one case in the text: steps of its plan, and characters of its task and of each step."""

    steps: int
    chars: int


_ROOMS = (Room(1_000_000, 1_000_000), Room(16, 300), Room(8, 160), Room(4, 80), Room(2, 40))
"""Rooms to try, from the whole case down to a length that still tells one case from another."""


@dataclass(frozen=True, slots=True)
class CasesSection:
    """The cases on the slate, best first; all are shortened alike before any is left out."""

    cases: Sequence[Remembered]

    def render(self, draft: Draft) -> tuple[list[Block], Part]:
        """Returns the cases that fit, and their share."""
        blocks = _blocks(self.cases, 1, "", draft)
        return blocks, Part.of("cases", blocks, len(blocks), len(self.cases) - len(blocks))


@dataclass(frozen=True, slots=True)
class OthersSection:
    """Further runs beside the slate, numbered after its cases."""

    others: Sequence[Remembered]

    def render(self, draft: Draft) -> tuple[list[Block], Part | None]:
        """Returns the further runs that fit after the slate's cases; none if not all of these are in the text."""
        cases = next((part for part in draft.parts if part.part == "cases"), None)
        if cases is None or cases.left_out:
            return [], None
        blocks = _blocks(self.others, cases.shown + 1, OTHERS, draft)
        return blocks, Part.of("others", blocks, len(blocks), len(self.others) - len(blocks))


def _blocks(cases: Sequence[Remembered], first: int, heading: str, draft: Draft) -> list[Block]:
    """Returns the cases in words, all in the largest room in which they fit; in the smallest, those that fit."""
    blocks: list[Block] = []
    for room in _ROOMS:
        whole = [Block(_case(number, each, room), heading) for number, each in enumerate(cases, start=first)]
        blocks = leading(whole, draft.fits)
        if len(blocks) == len(cases):
            break
    return blocks


def _case(number: int, remembered: Remembered, room: Room) -> str:
    plan = [shortened(step, room.chars) for step in remembered.plan[: room.steps]]
    if len(remembered.plan) > room.steps:
        plan.append(f"… {len(remembered.plan) - room.steps} more")
    steps = quoted_list(plan) if plan else "not recorded"
    reward = "unknown" if remembered.reward is None else f"{remembered.reward:g}"
    lines = (
        f"[{number}] Context: {quoted(shortened(remembered.task, room.chars))}",
        f"    Actions: {steps}",
        f"    Outcome: {remembered.outcome}{remembered.fate}",
        f"    Reward: {reward}",
    )
    return "\n".join(lines)
