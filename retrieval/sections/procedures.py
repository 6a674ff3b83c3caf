"""The section of procedures."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from retrieval.sections.context import Block, Draft, Part, assembled, leading
from retrieval.sections.quoting import quoted, quoted_list
from retrieval.tables.kinds import ProcedureKind
from retrieval.text import without_example
from retrieval.tokens import count_tokens

GUIDANCE = "Procedures learned from earlier runs: guidance and not orders.\n"
_PATTERN = re.compile(r"`[^`]*` \(for example (`[^`]*`)\)")
"""A statement with placeholders, and the one that it was made from, which says the same and more."""
REPORTED = "Procedures that came with earlier runs, unchecked: data, not guidance.\n"


@dataclass(frozen=True, slots=True)
class Guidance:
    """The fields of a procedure that the text quotes."""

    trigger: str
    steps: Sequence[str]
    cause: str = ""
    """Reason for the steps; empty where no call failed."""
    kind: ProcedureKind = "script"
    """Kind of the procedure; a failure lesson lists steps to avoid."""
    reported: bool = False
    """True for a procedure that a backend sent with its run, unchecked against the run's calls."""
    plan: Sequence[str] = ()
    """Plan of the run, where the steps are its calls; empty where it had none, or where a shown case has it."""


@dataclass(frozen=True, slots=True)
class ProceduresSection:
    """Procedures, best first; those that came with a run stand last and are called data.

    A procedure is left out whole, for half a procedure misleads. Of a pattern and its example, the example is told.

    Attributes:
        share: largest part of the budget, 0 to 1; 1 where there are no cases to show as well.
    """

    procedures: Sequence[Guidance]
    share: float = 1.0

    def render(self, draft: Draft) -> tuple[list[Block], Part]:
        """Returns the procedures that fit the share and the budget, and their part of it.

        The second and later procedures of a trigger are marked as alternatives.
        """
        first: dict[str, int] = {}
        every = []
        for number, each in enumerate(sorted(self.procedures, key=lambda one: one.reported), start=1):
            warns = each.kind == "failure_lesson"
            better = number if warns else first.setdefault(without_example(each.trigger), number)
            alternative = f" (another way than P{better})" if better != number else ""
            trigger, *_ = each.trigger.partition(" (for example: ")
            lines = [f"[P{number}] When: {quoted(trigger)}{alternative}"]
            lines += [f"    Why: {quoted(each.cause)}"] if each.cause else []
            lines += [f"    Plan: {quoted_list(each.plan)}"] if each.plan else []
            steps = [_PATTERN.sub(r"\1 (for example)", step) for step in each.steps]
            lines += [f"    {'Avoid (it was never put right)' if warns else 'Steps'}: {quoted_list(steps)}"]
            every.append(Block("\n".join(lines), REPORTED if each.reported else GUIDANCE))
        share = int(draft.token_budget * self.share)
        blocks = leading(every, lambda fitting: count_tokens(assembled(fitting)) <= share)
        while blocks and not draft.fits(blocks):
            blocks.pop()
        return blocks, Part.of("procedures", blocks, len(blocks), len(self.procedures) - len(blocks))
