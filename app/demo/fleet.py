"""The demo's fleet: new users with the policy learned from earlier users, compared with new users without it."""

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
"""Distance of the seeds of new users' houses from the seeds of the first ones."""
CANARY = 0.9
"""Share of a member's decisions that follow the fleet's policy on trial: the maximum of a profile."""

Settle = Callable[[str], Place]
"""Returns the place of the user with that name."""


@dataclass(frozen=True, slots=True)
class Runs:
    """The functions that run the tasks of a house."""

    settle: Settle
    rivals: Callable[[Place, House], Awaitable[tuple[Arm, Arm]]]
    """Runs the tasks without memory and with keyword memory."""
    with_memory: Callable[[Place, str, House], Awaitable[Arm]]
    """Runs the tasks with casebank; the text is the label of the progress bar."""


@dataclass(frozen=True, slots=True)
class NewUser:
    """One new house's tasks in each arm, task by task the same."""

    seed: int
    without: Arm
    keywords: Arm
    member: Arm
    outside: Arm | None = None
    """Arm with casebank outside the fleet; None if the fleet has no policy to try, since both would be equal."""

    @property
    def arms(self) -> Sequence[Arm]:
        """The arms in the order of the report."""
        outside = () if self.outside is None else (self.outside,)
        return self.without, self.keywords, *outside, self.member


@dataclass(frozen=True, slots=True)
class FleetReport:
    """The fleet's training, the results of new users, and the verdict of the gate if a policy was on trial."""

    trained: TrainingReport
    users: Sequence[NewUser]
    judged: TrainingReport | None = None

    @property
    def against_keywords(self) -> Comparison:
        """Members against keyword memory, over the new houses."""
        return compare_arms([(user.seed, user.keywords, user.member) for user in self.users])

    @property
    def against_others(self) -> Comparison | None:
        """Members against those outside; None if both are served the same."""
        contest = [(user.seed, user.outside, user.member) for user in self.users if user.outside is not None]
        return compare_arms(contest) if contest else None

    def sentences(self) -> list[str]:
        """Returns the results in words."""
        sentences = [self.against_keywords.sentence("casebank in the fleet")]
        if (found := self.against_others) is not None:
            verdict = "it helps them" if found.better else "no effect is shown"
            sentences.append(f"the fleet's policy, for new users: {found.numbers()}: {verdict}")
        return sentences

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
    """Trains the fleet of the users, runs as many new users in it, and prints the comparison.

    Args:
        trainer: trains every profile and the fleet, and reports the fleet.
        runs: functions that run the tasks.
        users: users with a log, each with the house.
        console: output.

    Returns:
        The report; None with fewer users than a fleet needs.
    """
    console.rule("Learning from all users for new ones")
    if len(users) < FEWEST_USERS:
        seeds = " ".join(f"--seed {users[0][1].seed + number}" for number in range(FEWEST_USERS))
        console.print(f"  this needs {FEWEST_USERS} users: casebank demo --learn {seeds}", markup=False)
        return None
    for user, _ in users:
        await _set_profile(runs.settle(user), fleet="both")
    trained = await trainer.train()
    tried = trained.outcome == "candidate"
    console.print(f"  trained on {trained.decisions} rewarded retrievals: {trained.outcome}", markup=False)
    if not tried:
        console.print("  new users start with the untrained default, like users outside the fleet", markup=False)
    new = [await _new_user(runs, user, House(known.seed + NEW, known.length), tried=tried) for user, known in users]
    report = FleetReport(trained, new, await trainer.train() if tried else None)

    def say(text: str, style: str = "") -> None:
        console.print(f"  {text}", style=style, markup=False, highlight=False)

    console.print(_table(report))
    for each in report.users:
        say(f"seed {each.seed}: " + "; ".join(f"{arm.name} {headline(arm)}" for arm in each.arms))
    for sentence in report.sentences():
        say(sentence, "bold")
    if report.judged is not None:
        say(f"the gate's verdict, from the decisions of all members: {report.judged.outcome}")
    return report


async def _new_user(runs: Runs, name: str, house: House, *, tried: bool) -> NewUser:
    outside, member = runs.settle(f"{name}-outside"), runs.settle(f"{name}-member")
    await _set_profile(member, fleet="receive", canary=CANARY)
    return NewUser(
        house.seed,
        *await runs.rivals(outside, house),
        await runs.with_memory(member, "in the fleet", house),
        await runs.with_memory(outside, "outside the fleet", house) if tried else None,
    )


async def _set_profile(place: Place, **settings: object) -> None:
    async with place.client() as client:
        (await client.put(f"/v1/profiles/{AGENT}", json=settings)).raise_for_status()


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
