"""A shop whose support agent gets look-alike requests: kinds, their right plans, and the shop's answers to calls.

Requests of all kinds share their sentences, names, products and order numbers; a few small words or an amount decide.
An order asks for several things over time, so the number in common misleads as well.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.replay.runs import Call

Step = tuple[str, Mapping[str, object]]
"""A tool and its arguments; ``{slot}`` stands for a value of the request."""
Slots = Mapping[str, object]
"""Values of a request by name: order number, product, name, amount, month, address."""

LAST_RULE = 5
"""Number of rules that refusals name; several kinds share one, so an error narrows the kinds and decides none."""
REFERENCES = 60
"""Number of orders that requests are about."""
_MONTHS = ("March", "April", "June", "September", "November")
_STREETS = ("Mill Lane", "Station Road", "Church Street", "Park Avenue", "Green Hill", "High Street", "Kings Road")
_NAMES = (
    "Maria Lopez", "John Weber", "Aisha Khan", "Tom Becker", "Lena Novak", "Paul Martin", "Chen Wei", "Sara Rossi",
    "Omar Haddad", "Eva Lind", "Jack Moore", "Nina Petrov", "Ravi Patel", "Ida Holm", "Luis Costa", "Mona Berg",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of request.

    Attributes:
        clauses: decisive parts of the request's sentence.
        plan: calls that solve it, in order.
        changed: calls that solve it once the shop has changed its rules for this kind.
        amounts: least and greatest amount in euros.
    """

    name: str
    clauses: tuple[str, ...]
    plan: tuple[Step, ...]
    changed: tuple[Step, ...]
    amounts: tuple[int, int] = (8, 900)


@dataclass(frozen=True, slots=True)
class Shop:
    """A shop.

    Attributes:
        kinds: kinds of request.
        frames: sentences around a clause, shared by all kinds.
        openings, closings: beginnings and ends of requests, shared by all kinds.
        things: products or services.
        reference: format of an order's number.
    """

    name: str
    kinds: tuple[Kind, ...]
    frames: tuple[str, ...]
    openings: tuple[str, ...]
    closings: tuple[str, ...]
    things: tuple[str, ...]
    reference: str

    def requests(self, rng: random.Random, number: int, changed: frozenset[str] = frozenset()) -> list["Request"]:
        """Draws requests, some kinds more often than others, each kind at least once in 2 * len(kinds) requests.

        Args:
            rng: the lots.
            number: number of requests.
            changed: names of the kinds whose rules have changed.
        """
        orders = [
            (self.reference.format(rng.randrange(1000, 9999)), rng.choice(self.things), rng.choice(_NAMES))
            for _ in range(REFERENCES)
        ]
        kinds = list(range(len(self.kinds)))
        rng.shuffle(kinds)
        often = [1 / (4 + rank) for rank in range(len(kinds))]
        drawn = kinds + rng.choices(kinds, often, k=max(number - len(kinds), 0))
        head = drawn[: 2 * len(kinds)]
        rng.shuffle(head)
        order = [*head, *drawn[len(head) :]][:number]
        return [self._request(rng, index, rng.choice(orders), changed) for index in order]

    def _request(
        self, rng: random.Random, index: int, order: tuple[str, str, str], changed: frozenset[str]
    ) -> "Request":
        kind = self.kinds[index]
        slots: Slots = {
            **dict(zip(("ref", "thing", "name"), order, strict=True)),
            "amount": rng.randint(*kind.amounts),
            "month": rng.choice(_MONTHS),
            "address": f"{rng.randint(1, 99)} {rng.choice(_STREETS)}",
        }
        clause = rng.choice(kind.clauses)
        pattern = "".join(rng.choice(part) for part in (self.openings, self.frames, self.closings))
        pattern = pattern.replace("{clause}", clause).replace("{Clause}", clause[0].upper() + clause[1:])
        return Request(
            text=pattern.format_map(slots),
            kind=kind.name,
            rule=1 + index % LAST_RULE,
            slots=slots,
            plan=filled(kind.changed if kind.name in changed else kind.plan, slots),
        )

    def plans(self, slots: Slots, changed: frozenset[str] = frozenset()) -> list[tuple[Call, ...]]:
        """Returns the plan of each kind, filled with the slots of a request."""
        return [filled(kind.changed if kind.name in changed else kind.plan, slots) for kind in self.kinds]

    def adapted(self, plan: Sequence[Call], slots: Slots) -> tuple[Call, ...]:
        """Returns a remembered plan with the request's own values in place of the remembered request's."""
        steps = [step for kind in self.kinds for step in (*kind.plan, *kind.changed)]
        own = {
            name: slots[slot] for _, arguments in steps for name, value in arguments.items() if (slot := _slot(value))
        }
        return tuple(
            done(call.tool, {name: own.get(name, value) for name, value in call.input.items()})
            for call in plan
            if isinstance(call.input, Mapping)
        )


@dataclass(frozen=True, slots=True)
class Request:
    """One request with its right plan, which the agent does not see."""

    text: str
    kind: str
    rule: int
    slots: Slots
    plan: tuple[Call, ...]

    def refusal(self, call: Call) -> Call:
        """Returns the call as the shop refuses it."""
        return Call(call.tool, call.input, f"refused: {call.tool} is against rule {self.rule}", ok=False)


def filled(plan: Sequence[Step], slots: Slots) -> tuple[Call, ...]:
    """Returns the calls of a plan, with the values of a request."""
    return tuple(
        done(tool, {name: slots[slot] if (slot := _slot(value)) else value for name, value in arguments.items()})
        for tool, arguments in plan
    )


def done(tool: str, arguments: Mapping[str, object]) -> Call:
    """Returns a call that succeeds."""
    return Call(tool, dict(arguments), "done", ok=True)


def _slot(value: object) -> str:
    """Returns the name of the slot that fills an argument; "" if the argument is the same for every request."""
    return value[1:-1] if isinstance(value, str) and value.startswith("{") else ""
