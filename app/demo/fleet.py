"""The demo's fleet: new users in other houses are served what its users learned, beside others who do without."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from app.demo.arms import FIRST_TRY, STEPS, SUCCESS, Arm, mean, pooled
from app.demo.compare import Comparison, compare_arms
from app.demo.learning import Trainer, TrainingReport
from app.demo.operator.house import House
from app.demo.report import headline
from app.demo.run import AGENT, Place
from writer.training.shared_prior import FEWEST_USERS

NEW = 100
"""How far the seeds of new users' houses are from those of the first."""
CANARY = 0.9
"""The share of a member's decisions that tries what the fleet learned: as much as a profile may ask for."""

Settle = Callable[[str], Place]
"""Returns where the user of that name works."""


@dataclass(frozen=True, slots=True)
class Runs:
    """How the tasks of a house are run."""

    settle: Settle
    rivals: Callable[[Place, House], Awaitable[tuple[Arm, Arm]]]
    """Without memory, and with keyword memory."""
    with_memory: Callable[[Place, str, House], Awaitable[Arm]]
    """With casebank; the text stands beside the progress bar."""


@dataclass(frozen=True, slots=True)
class NewUser:
    """One new house's tasks in each arm, task by task the same."""

    seed: int
    without: Arm
    keywords: Arm
    member: Arm
    outside: Arm | None = None
    """With casebank, outside the fleet; None where the fleet tries nothing, so that its members are served alike."""

    @property
    def arms(self) -> Sequence[Arm]:
        """The arms in the order in which they are told."""
        outside = () if self.outside is None else (self.outside,)
        return self.without, self.keywords, *outside, self.member


@dataclass(frozen=True, slots=True)
class FleetReport:
    """What the fleet learned, what that was worth to new users, and what the gate says of it, if anything is tried."""

    trained: TrainingReport
    users: Sequence[NewUser]
    judged: TrainingReport | None = None

    @property
    def against_keywords(self) -> Comparison:
        """Members against keyword memory, over the new houses."""
        return compare_arms([(user.seed, user.keywords, user.member) for user in self.users])

    @property
    def against_others(self) -> Comparison | None:
        """Members against those outside; None where both are served alike."""
        contest = [(user.seed, user.outside, user.member) for user in self.users if user.outside is not None]
        return compare_arms(contest) if contest else None

    def sentences(self) -> list[str]:
        """Returns what the numbers say, in words."""
        said = [self.against_keywords.sentence("casebank in the fleet")]
        if (found := self.against_others) is not None:
            verdict = "it helps them" if found.better else "that it helps them is not shown"
            said.append(f"what the fleet learned, to new users: {found.numbers()}: {verdict}")
        return said

    def as_dict(self) -> dict[str, object]:
        """Returns every number of the report, ready for JSON."""
        others = self.against_others
        return {
            "trained": self.trained.model_dump(),
            "judged": None if self.judged is None else self.judged.model_dump(),
            "members_against_keyword_memory": {
                **self.against_keywords.as_dict(),
                "beats_keyword_memory": self.against_keywords.proven,
            },
            "members_against_others": None if others is None else others.as_dict(),
            "streams": [
                {"seed": user.seed, "arms": {arm.name: arm.as_dict() for arm in user.arms}} for user in self.users
            ],
        }


async def show_fleet(
    trainer: Trainer, runs: Runs, users: Sequence[tuple[str, House]], console: Console
) -> FleetReport | None:
    """Lets the users share what they learned, runs as many new ones in their fleet, and prints what that was worth.

    Args:
        trainer: trains every profile and the agent's fleet, and tells of the fleet.
        runs: where users work, and what they do.
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
        await _set_profile(runs.settle(user), contribute=True, receive=True)
    trained = await trainer.train()
    tried = trained.outcome == "candidate"
    console.print(f"  trained on {trained.decisions} rewarded retrievals: {trained.outcome}", markup=False)
    if not tried:
        console.print("  new users begin with the untrained default, as anybody outside the fleet does", markup=False)
    new = [await _new_user(runs, user, House(known.seed + NEW, known.length), tried=tried) for user, known in users]
    report = FleetReport(trained, new, await trainer.train() if tried else None)
    _print(report, console)
    return report


async def _new_user(runs: Runs, name: str, house: House, *, tried: bool) -> NewUser:
    outside, member = runs.settle(f"{name}-outside"), runs.settle(f"{name}-member")
    await _set_profile(member, receive=True, canary=CANARY)
    return NewUser(
        house.seed,
        *await runs.rivals(outside, house),
        await runs.with_memory(member, "in the fleet", house),
        await runs.with_memory(outside, "outside the fleet", house) if tried else None,
    )


async def _set_profile(place: Place, **settings: object) -> None:
    async with place.client() as client:
        (await client.put(f"/v1/profiles/{AGENT}", json=settings)).raise_for_status()


def _print(report: FleetReport, console: Console) -> None:
    def say(text: str, style: str = "") -> None:
        console.print(f"  {text}", style=style, markup=False, highlight=False)

    console.print(_table(report))
    for user in report.users:
        say(f"seed {user.seed}: " + "; ".join(f"{arm.name} {headline(arm)}" for arm in user.arms))
    for sentence in report.sentences():
        say(sentence, "bold")
    if report.judged is not None:
        say(f"the gate's verdict, by all of its members' decisions: {report.judged.outcome}")


def _table(report: FleetReport) -> Table:
    title = f"{len(report.users)} new users, in as many new houses"
    table = Table("", title=title, title_justify="left", box=SIMPLE)
    for name in ("steps", "solved", "1st try"):
        table.add_column(name, justify="right")
    for arms in zip(*(user.arms for user in report.users), strict=True):
        whole = pooled(arms)
        rates = (f"{mean(whole.records, value):.0%}" for value in (SUCCESS, FIRST_TRY))
        table.add_row(whole.name, f"{mean(whole.records, STEPS):.1f}", *rates)
    return table
