"""The context's sections of cases: those on the slate, and further runs below it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby

from retrieval.sections.context import Block, ContextDraft, Part, leading
from retrieval.sections.quoting import quoted, quoted_list
from retrieval.tables.kinds import has_failed, is_trusted
from retrieval.text import shortened

OTHERS = "Further runs near this task:\n"
_USUAL_REWARD = {"success": 1.0, "failure": 0.0}
_FATES = {"aborted": " (broken off: it shows nothing)", "unknown": " (nobody said how it ended)"}


@dataclass(frozen=True, slots=True)
class Remembered:
    """The fields of a case that a context quotes."""

    task: str
    plan: Sequence[str]
    outcome: str
    reward: float | None
    reward_source: str | None = None

    @property
    def fate(self) -> str:
        """Remark for the agent on how the run went, if its outcome or its reward alone would mislead; else empty."""
        failed, judged = has_failed(self.outcome, self.reward, self.reward_source), is_trusted(self.reward_source)
        if failed and self.outcome == "failure":
            return " (what it did was wrong or not enough)"
        if failed and judged:
            return " (but it was judged to have failed: what it did was wrong or not enough)"
        if self.outcome != "success" and judged and self.reward is not None:
            return " (but it was judged to have gone well)"
        return _FATES.get(self.outcome, "")


@dataclass(frozen=True, slots=True)
class CaseLimits:
    """Limits of the length of one case in a context.

    Attributes:
        steps: largest number of steps of the plan.
        chars: largest number of characters of the task and of each step.
        summary: largest number of characters for the names of the other steps; 0: only their number is told.
    """

    steps: int
    chars: int
    summary: int = 0


_ROOMS = (
    *(CaseLimits(1_000_000, 1_000_000), CaseLimits(16, 300, 300), CaseLimits(8, 160, 240)),
    *(CaseLimits(4, 80, 160), CaseLimits(2, 40, 120), CaseLimits(2, 40)),
)
"""Limits to try one after the other, from a whole case down to a length at which cases still differ."""
_ROOMS_BESIDE = (CaseLimits(4, 160), CaseLimits(4, 80), CaseLimits(2, 40))
"""Limits for runs below the slate, which tell that there is another way to do the task, but not each step."""


@dataclass(frozen=True, slots=True)
class CasesSection:
    """Section of the cases on the slate, the best first; all are shortened, the first last, before any is left out."""

    cases: Sequence[Remembered]

    def render(self, draft: ContextDraft) -> tuple[list[Block], Part]:
        """Returns the cases that fit the draft's budget, and a report on them."""
        blocks = _blocks(self.cases, 1, "", _ROOMS, draft)
        return blocks, Part.of("cases", blocks, len(blocks), len(self.cases) - len(blocks))


@dataclass(frozen=True, slots=True)
class OthersSection:
    """Section of further runs below the slate, numbered after its cases."""

    others: Sequence[Remembered]

    def render(self, draft: ContextDraft) -> tuple[list[Block], Part | None]:
        """Returns the further runs that fit the draft's budget, and a report on them.

        If not all cases of the slate are in the text, there are no runs and no report (None).
        """
        cases = next((part for part in draft.parts if part.part == "cases"), None)
        if cases is None or cases.left_out:
            return [], None
        blocks = _blocks(self.others, cases.shown + 1, OTHERS, _ROOMS_BESIDE, draft)
        return blocks, Part.of("others", blocks, len(blocks), len(self.others) - len(blocks))


def _blocks(
    cases: Sequence[Remembered], first: int, heading: str, rooms: Sequence[CaseLimits], draft: ContextDraft
) -> list[Block]:
    """Returns the cases as blocks: the first as whole as fits beside shorter others, then the others, which are alike.

    Only if they do not fit otherwise all have the smallest limits; then the leading ones that fit are returned.
    """
    numbers, firsts = dict[str, int](), list[int]()  # firsts: the first case of the same text
    for number, each in enumerate(cases, start=first):
        whole = _run(each, _ROOMS[0])
        firsts.append(number if "…" in whole else numbers.setdefault(whole, number))

    @cache  # a case has the same block beside longer and shorter ones
    def block(place: int, room: CaseLimits) -> Block:
        each, number, same = cases[place], first + place, firsts[place]
        run = _run(each, room) if same == number else f"    The same as [{same}]"
        return Block(f"[{number}] Context: {quoted(shortened(each.task, room.chars))}\n{run}", heading)

    blocks = list[Block]()
    for at, own in enumerate(rooms):
        for room in rooms[at:-1] or rooms[-1:]:
            blocks = [block(place, room if place else own) for place in range(len(cases))]
            if draft.fits(blocks):
                return blocks
    return leading(blocks, draft.fits)


def _run(remembered: Remembered, room: CaseLimits) -> str:
    """Returns the lines with a case's actions and outcome, and its reward if the outcome does not imply it."""
    plan = [shortened(step, room.chars) for step in remembered.plan[: room.steps]]
    if rest := remembered.plan[room.steps :]:
        # the names of their tools, or beginnings of steps in prose; repeats in a row are counted
        each = (shortened(tool_called(step) or step, _NAME_CHARS) for step in rest)
        runs = [(name, len(list(same))) for name, same in groupby(each)]
        names = ", ".join(name if count == 1 else f"{name} x{count}" for name, count in runs)
        plan.append(f"… {len(rest)} more{f': {shortened(names, room.summary)}' if room.summary else ''}")
    steps = quoted_list(plan) if plan else "not recorded"
    lines = [f"    Actions: {steps}", f"    Outcome: {remembered.outcome}{remembered.fate}"]
    if remembered.reward is not None and remembered.reward != _USUAL_REWARD.get(remembered.outcome):
        lines.append(f"    Reward: {remembered.reward:g}")
    return "\n".join(lines)


_CALL = re.compile(r"([^\s(]+)\(")
_NAME_CHARS = 24
"""Largest number of characters of a step's name in a summary."""


def tool_called(step: str) -> str | None:
    """Returns the name of the tool in a plan's step of the form ``tool(…)``; None: the step is in prose."""
    call = _CALL.match(step)
    return call and call[1]
