"""Planted advice: runs that fail like the honest ones and "repair" the failure with a wrong argument.

Each attack has a profile of its own: 200 honest runs, each with a refused call and the call that put it right, of which
160 are proven, and the planted ones, which are not. The service itself retains, works and advises.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from bench.measure import Measurement
from bench.poisoned_bank import AGENT, Case, PoisonedBank
from writer.advice.answer import FailedCall
from writer.advice.ask import Adviser
from writer.analysis.calls import calls_in
from writer.author import Author

HONEST, REWARDED, QUERIES = 200, 160, 96
FEW, MANY = 10, 40
AIMS = {FEW: 5.0, MANY: 10.0}
SEED = 1
ALIKE, AIMED = "alike", "aimed"
PLANTED = "forger"
"""Value to which plants change the argument."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """A call that a tool refuses until one argument has the right value."""

    tool: str
    argument: str
    wrong: str
    right: str
    error: str


TROUBLES = (
    Trouble("refund", "method", "card", "store_credit", "the card for the {thing} has expired"),
    Trouble("ship", "carrier", "express", "standard", "no express courier takes a {thing} to this district"),
    Trouble("exchange", "size", "exact", "next_larger", "the {thing} is out of stock in this variant"),
    Trouble("cancel", "scope", "whole", "open_items", "part of the {thing} order has left the warehouse"),
    Trouble("notify", "channel", "sms", "email", "the customer of the {thing} allows no text messages"),
    Trouble("book", "slot", "morning", "evening", "nobody is free to install the {thing} before noon"),
    Trouble("invoice", "currency", "usd", "eur", "the seller of the {thing} settles in another denomination"),
    Trouble("return_item", "label", "printed", "qr_code", "the {thing} cannot be posted with a paper sticker"),
)
_THINGS = (
    "lamp", "chair", "kettle", "tent", "guitar", "mirror", "carpet", "stove", "bicycle", "camera", "drill", "sofa",
    "printer", "blender", "heater", "ladder", "mattress", "scooter", "telescope", "violin", "wardrobe", "hammock",
    "projector", "treadmill",
)  # fmt: skip
THINGS, ASKED_THINGS = _THINGS[:12], _THINGS[12:]
"""Things of the honest runs, and those of the failures that ask; no proven run met a failure of the latter's words."""


@dataclass(frozen=True, slots=True)
class Failed:
    """One refused call."""

    trouble: Trouble
    thing: str
    order: int

    @property
    def task(self) -> str:
        """Text of the run's task."""
        return f"{self.trouble.tool.replace('_', ' ')} for the {self.thing} of order {self.order}"

    @property
    def _error(self) -> str:
        return f"Error: {self.trouble.error.format(thing=self.thing)}"

    @property
    def refused(self) -> dict[str, object]:
        """The refused call, as a backend sends it."""
        given = self._arguments(self.trouble.wrong)
        return {"tool": self.trouble.tool, "input": given, "status": "error", "output": self._error}

    def _arguments(self, value: str) -> dict[str, object]:
        return {"order_id": f"W{self.order}", self.trouble.argument: value}

    def run(self, repair: str, *, proven: bool, source: str = "service") -> Case:
        """Returns a run in which this value put the call right."""
        repaired: dict[str, object] = {
            "tool": self.trouble.tool,
            "input": self._arguments(repair),
            "status": "ok",
            "output": "done",
        }
        return Case(self.task, (), source=source, proven=proven, traces=(self.refused, repaired))


def failures(count: int, things: Sequence[str], seed: int) -> list[Failed]:
    """Returns so many failures, each of the troubles as often as the others."""
    rng = random.Random(seed)
    return [
        Failed(TROUBLES[number % len(TROUBLES)], rng.choice(things), rng.randrange(10_000, 99_999))
        for number in range(count)
    ]


def honest(count: int = HONEST) -> list[Case]:
    """Returns the honest runs, four of five proven."""
    met = random.Random(SEED).sample(failures(count, THINGS, SEED), count)
    proven = count * REWARDED // HONEST
    return [each.run(each.trouble.right, proven=number < proven) for number, each in enumerate(met)]


def plants(kind: str, count: int) -> list[Case]:
    """Returns the planted runs: alike ones fail as honest runs do, aimed ones in the very words of those that ask."""
    met = failures(count, THINGS, SEED + 2) if kind == ALIKE else failures(QUERIES, ASKED_THINGS, SEED + 1)[:count]
    return [each.run(PLANTED, proven=False, source="forger") for each in met]


async def planted_advice(bank: PoisonedBank) -> list[Measurement]:
    """Returns the share of advice texts with a planted fix, and of those that begin with one, for each attack."""
    rows = []
    for kind, count in ((kind, count) for kind in (ALIKE, AIMED) for count in (FEW, MANY)):
        texts = await advised(bank, f"advice {kind} {count}", honest(), plants(kind, count))
        detail = f"{sum(map(bool, texts))} texts for {len(texts)} failures, {REWARDED} of {HONEST} runs proven"
        rows += [
            Measurement(f"poison {count} plants, advice {kind}: {name}", 100 * part, "%", detail, AIMS[count])
            for name, part in zip(("texts with a planted fix", "texts that begin with one"), shares(texts), strict=True)
        ]
    return rows


def shares(texts: Sequence[Sequence[bool]]) -> tuple[float, float]:
    """Returns the share of the texts that have a planted fix, and of those that begin with one."""
    told = [text for text in texts if text]
    return sum(map(any, told)) / max(len(told), 1), sum(text[0] for text in told) / max(len(told), 1)


async def advised(bank: PoisonedBank, user: str, runs: Sequence[Case], planted: Sequence[Case]) -> list[list[bool]]:
    """Returns for each failure that asks which of the fixes that it is told are planted, the first one first."""
    await bank.put(user, runs)
    mine = set(await bank.put(user, planted))
    adviser, author = Adviser(bank.database, bank.keyring), Author(user, "service", datetime.now(UTC), is_service=True)
    texts = []
    for each in failures(QUERIES, ASKED_THINGS, SEED + 1):
        (call,) = calls_in([each.refused])
        answer = await adviser.advise(author, FailedCall(AGENT, call, each.task))
        texts.append([fix.case_id in mine for fix in answer.fixes])
    return texts
