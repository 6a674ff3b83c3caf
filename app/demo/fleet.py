"""The demo's fleet: what its users learned is tried on new users in other houses, beside others who do without."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from rich.console import Console

from app.agents.operator.house import House
from app.demo.arms import Arm, pooled
from app.demo.compare import Comparison, compare_arms
from app.demo.learning import Trainer, TrainingReport, totals_of
from app.demo.run import AGENT, Place
from writer.training.shared_prior import FEWEST_USERS

NEW = 100
"""How far the seeds of new users' houses are from those of the first."""
CANARY = 0.9
"""The share of a member's decisions that tries what the fleet learned: as much as a profile may ask for."""

Settle = Callable[[str], Place]
"""Returns where the user of that name works."""
Run = Callable[[Place, str, House], Awaitable[Arm]]
"""Runs a house's tasks with memory; the text stands beside the progress bar."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One new house's tasks, for a user outside the fleet and for a member of it."""

    seed: int
    outside: Arm
    member: Arm

    @property
    def arms(self) -> tuple[Arm, Arm]:
        """The arms in the order in which they are told."""
        return self.outside, self.member


@dataclass(frozen=True, slots=True)
class FleetReport:
    """What the fleet learned, what that was worth to new users, and what the gate says of it."""

    trained: TrainingReport
    pairs: Sequence[Pair] = ()
    judged: TrainingReport | None = None

    @property
    def comparison(self) -> Comparison:
        """Members against those outside, over the new houses."""
        return compare_arms([(pair.seed, pair.outside, pair.member) for pair in self.pairs])

    def as_dict(self) -> dict[str, object]:
        """Returns every number of the report, ready for JSON."""
        return {
            "trained": self.trained.model_dump(),
            "judged": None if self.judged is None else self.judged.model_dump(),
            "members_against_others": self.comparison.as_dict() if self.pairs else None,
            "streams": [
                {"seed": pair.seed, "arms": {arm.name: arm.as_dict() for arm in pair.arms}} for pair in self.pairs
            ],
        }


async def show_fleet(
    trainer: Trainer, settle: Settle, run: Run, users: Sequence[tuple[str, House]], console: Console
) -> FleetReport | None:
    """Lets the users share what they learned, tries it on as many new ones, and prints what it was worth to them.

    Args:
        trainer: trains every profile and the agent's fleet, and tells of the fleet.
        settle: where users work.
        run: what they do.
        users: who has a log already, each with the house.
        console: where it is told.

    Returns:
        The report; None of fewer users than a fleet takes.
    """
    console.rule("What users share with new ones")
    if len(users) < FEWEST_USERS:
        seeds = " ".join(f"--seed {users[0][1].seed + number}" for number in range(FEWEST_USERS))
        console.print(f"  it takes {FEWEST_USERS} users: casebank demo --learn {seeds}", markup=False)
        return None
    for user, _ in users:
        await _set_profile(settle(user), contribute=True, receive=True)
    trained = await trainer.train()
    console.print(f"  trained on {trained.decisions} rewarded retrievals: {trained.outcome}", markup=False)
    if trained.outcome != "candidate":
        console.print("  new users begin with the untrained default", markup=False)
        return FleetReport(trained)
    pairs = []
    for user, known in users:
        house = House(known.seed + NEW, known.length)
        outside, member = settle(f"{user}-outside"), settle(f"{user}-member")
        await _set_profile(member, receive=True, canary=CANARY)
        pairs.append(
            Pair(house.seed, await run(outside, "outside the fleet", house), await run(member, "in the fleet", house))
        )
    report = FleetReport(trained, pairs, await trainer.train())
    _print(report, console)
    return report


async def _set_profile(place: Place, **settings: object) -> None:
    async with place.client() as client:
        (await client.put(f"/v1/profiles/{AGENT}", json=settings)).raise_for_status()


def _print(report: FleetReport, console: Console) -> None:
    def say(text: str, style: str = "") -> None:
        console.print(f"  {text}", style=style, markup=False, highlight=False)

    for pair in report.pairs:
        say(f"seed {pair.seed}: " + "; ".join(f"{arm.name} {totals_of(arm)}" for arm in pair.arms))
    for arms in zip(*(pair.arms for pair in report.pairs), strict=True):
        say(f"all new users {arms[0].name}: {totals_of(pooled(arms))}")
    found = report.comparison
    verdict = "it helps them" if found.better else "that it helps them is not shown"
    say(f"what the fleet learned, to new users: {found.numbers()}: {verdict}", "bold")
    if report.judged is not None:
        say(f"the gate's verdict, by all of its members' decisions: {report.judged.outcome}")
