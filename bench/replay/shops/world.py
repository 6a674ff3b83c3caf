"""The shops as worlds that an agent acts in: the next call of the right plan goes through, any other is refused."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from bench.replay.loops import BUDGET, Plan
from bench.replay.runs import Call, Run
from bench.replay.shops.bookings import BOOKINGS
from bench.replay.shops.contracts import CONTRACTS
from bench.replay.shops.parcels import PARCELS
from bench.replay.shops.shop import Request, Shop

TASKS = 120
"""Number of tasks of one seed."""


@dataclass(slots=True)
class Service:
    """A request in progress."""

    shop: Shop
    request: Request
    done: list[Call] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Text of the request."""
        return self.request.text

    @property
    def kind(self) -> str:
        """Kind of the request."""
        return self.request.kind

    @property
    def budget(self) -> int:
        """Largest number of calls."""
        return BUDGET

    @property
    def error(self) -> None:
        """No error: a request begins without one."""

    @property
    def solved(self) -> bool:
        """True once all calls of the right plan are made."""
        return len(self.done) == len(self.request.plan)

    def adapted(self, plan: Plan) -> Plan:
        """Returns the plan with the request's own values."""
        return self.shop.adapted(plan, self.request.slots)

    def act(self, call: Call) -> Call:
        """Makes the call if it is the next one of the right plan, or returns it refused."""
        right = self.request.plan[len(self.done)]
        if (call.tool, call.input) != (right.tool, right.input):
            return self.request.refusal(call)
        self.done.append(right)
        return right

    def give_up(self) -> None:
        """Leaves all as it is: what was right stays done."""

    def known(self) -> Sequence[Plan]:
        """Returns the plans of all kinds."""
        return self.shop.plans(self.request.slots)


@dataclass(frozen=True, slots=True)
class ShopWorld:
    """A shop with rules that stay."""

    shop: Shop
    tasks: int = TASKS

    @property
    def name(self) -> str:
        """Name, for reports."""
        return f"support_{self.shop.name}"

    def demonstrations(self, seed: int) -> Sequence[Run]:  # noqa: ARG002 - the protocol's
        """Returns no runs: the agent finds all by itself."""
        return ()

    def attempts(self, seed: int) -> Iterator[Service]:
        """Yields the requests of a seed."""
        for request in self.shop.requests(random.Random(f"{seed}:{self.name}:loop"), self.tasks):
            yield Service(self.shop, request)


SHOP_WORLDS = (ShopWorld(PARCELS), ShopWorld(CONTRACTS), ShopWorld(BOOKINGS))
