"""An office of forms: each job is three calls of tools in a row, each with the one argument that the rules require.

The rules are secret: a call without the required argument is refused, and the refusal does not name it. Later the
office changes its rules: every call of a job but the first then requires another argument.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.demo.memory import Trace

ARGUMENTS = ("reason", "ticket", "approval", "currency", "channel", "cost_center")
"""Possible arguments of a call, beside its number."""


@dataclass(frozen=True, slots=True)
class Job:
    """A kind of task: its wordings, and the tools that do it, in their order."""

    wordings: Sequence[str]
    tools: Sequence[str]


JOBS: Mapping[str, Job] = {
    "refund": Job(
        ("Refund order {n} of {who}, which arrived broken", "Pay back the broken order {n} to {who}"),
        ("find_order", "refund_payment", "notify_customer"),
    ),
    "move": Job(
        ("Change the postal address of {who}, customer {n}", "Customer {n}, {who}, has moved: change the address"),
        ("find_customer", "update_address", "send_confirmation"),
    ),
    "unlock": Job(
        ("Unlock the blocked login {n} of {who}", "The login {n} of {who} is blocked, unlock it"),
        ("verify_identity", "unlock_login", "write_protocol"),
    ),
    "cancel": Job(
        ("Cancel the unpaid invoice {n} for {who}", "Invoice {n} for {who} was never paid: cancel it"),
        ("find_invoice", "cancel_invoice", "close_booking"),
    ),
}
_NAMES = ("Ada Lind", "Bo Karlsson", "Cleo Marsh", "Dov Stern", "Esi Boateng", "Finn Aalto", "Gita Rao", "Hugo Paz")


@dataclass(frozen=True, slots=True)
class Errand:
    """One task; ``wanted`` has the required argument of each tool, which the clerk does not see."""

    id: str
    family: str
    text: str
    number: str
    tools: Sequence[str]
    wanted: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Form:
    """A call as the clerk fills it in."""

    tool: str
    argument: str


class Office:
    """One errand at a time."""

    def __init__(self) -> None:
        self.traces: list[Trace] = []
        self._errand: Errand | None = None
        self._done = 0

    @property
    def done(self) -> bool:
        """Returns whether every call of the errand was taken."""
        return self._errand is not None and self._done == len(self._errand.tools)

    @property
    def reward(self) -> float:
        """Returns 1 once the errand is done, before that 0."""
        return float(self.done)

    async def reset(self, task: Errand) -> Sequence[str]:
        """Lays out the errand; returns its tools in their order."""
        self._errand, self._done, self.traces = task, 0, []
        return task.tools

    async def step(self, action: Form) -> bool:
        """Files the form; returns whether it was taken."""
        assert self._errand is not None  # noqa: S101 - the harness resets first
        next_tool = self._errand.tools[self._done]
        taken = action.tool == next_tool and action.argument == self._errand.wanted[action.tool]
        arguments = {"number": self._errand.number, action.argument: "as required"}
        answer, status = ("taken", "ok") if taken else ("refused: a required argument is missing", "error")
        self.traces.append(Trace(action.tool, arguments, answer, status, 1.0))
        self._done += taken
        return taken


def errands(family: str, seed: int, numbers: Sequence[int], *, changed: bool) -> list[Errand]:
    """Returns errands under the first rules, or under the changed ones; the same seed gives the same errands."""
    return [_errand(family, seed, number, rules(family, seed, changed=changed)) for number in numbers]


def rules(family: str, seed: int, *, changed: bool) -> dict[str, str]:
    """Returns the required argument of each tool of the job."""
    rng = random.Random(f"{seed}:{family}:rules")
    wanted = {}
    for place, tool in enumerate(JOBS[family].tools):
        before, after = rng.sample(ARGUMENTS, 2)
        wanted[tool] = after if changed and place else before
    return wanted


def _errand(family: str, seed: int, number: int, wanted: Mapping[str, str]) -> Errand:
    rng, job = random.Random(f"{seed}:{family}:{number}"), JOBS[family]
    about = str(10_000 + 97 * number + rng.randrange(97))
    text = rng.choice(job.wordings).format(n=about, who=rng.choice(_NAMES))
    return Errand(f"{family}-{number}", family, text, about, job.tools, wanted)
