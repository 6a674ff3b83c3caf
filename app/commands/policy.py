"""``casebank policy``: shows the policies of a profile, takes one out of service, and compares orders over all."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from sqlalchemy import RowMapping

from app.impact.compared import compared
from app.terminal.command_line import Agent, User, checked, parts
from app.terminal.plain_console import plain_console
from app.terminal.run_to_end import run_to_end as run
from policy.replay import CHOICE
from policy.verdict import trial_of
from retrieval.errors import NotFound
from retrieval.pages.listing import one_profile
from writer.replays.installation import ReplayTotals, totals
from writer.replays.profile_replay import SPOKEN, StoredReplay, stored_replay
from writer.replays.telling_words import telling_words
from writer.training.candidates import Demand
from writer.training.decision_log import rewarded
from writer.training.lifecycle import roll_back, versions

commands = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Show a profile's policies, take the serving one out of service, or compare orders over all profiles.",
)
out = plain_console()

LOOKS_SHOWN = 3
"""Number of a trial's latest looks that are printed; at a look the gate compares the evidence with its bound."""


@commands.command()
def rollback(user: User, agent: Agent) -> None:
    """Take the serving policy out of service; the order that replay chose serves instead."""

    async def work() -> int:
        async with parts() as runtime, runtime.database.as_user(checked(user), datetime.now(UTC)) as connection:
            return await roll_back(connection, user, agent, actor="casebank policy rollback")

    out.print(f"q-{run(work())} serves no more")


@commands.command()
def show(user: User, agent: Agent) -> None:
    """Show what a replay of the profile's runs says of each order, runs with and without a case, and its policies."""

    async def work() -> tuple[list[RenderableType], Sequence[RowMapping], int | None]:
        async with (
            parts(only_reads=True) as runtime,
            runtime.database.as_user(checked(user), datetime.now(UTC)) as connection,
        ):
            if (profile := (await connection.execute(one_profile(user, agent))).one_or_none()) is None:
                raise NotFound("no such profile")
            lines = [_replayed(found := await stored_replay(connection, user, agent))]
            if found and (words := await telling_words(connection, runtime.keyring, user, agent, found.fit)):
                lines.append(f"words that tell the kinds of tasks apart: {', '.join(words)}")
            lines.append(await compared(connection, user, agent, datetime.now(UTC)))
            policies = (await connection.execute(versions(user, agent))).mappings().all()
            if not (profile.learning and profile.canary):
                return lines, policies, None
            return lines, policies, (await connection.execute(rewarded(user, agent))).scalar_one()

    lines, found, decisions = run(work())
    for line in lines:
        out.print(line, soft_wrap=True)
    if not found:
        off = "learning or its trials are off (`learning` and `canary` of the profile)"
        told = (
            f"no trained policy, and none is trained: {off}; the order that replay chose serves"
            if decisions is None
            else f"no trained policy yet: it needs {Demand().decisions} rewarded decisions, and there are {decisions};"
            " until then the order that replay chose serves"
        )
        out.print(told, soft_wrap=True)
        return
    table = Table("policy", "status", "decisions", "blend", "trained", "why")
    for row in found:
        why = list(row["verdict"]["reasons"]) if row["verdict"] else []
        trial = trial_of(row["verdict"])
        if trial is not None and row["status"] == "candidate":
            why.append(f"{trial.decisions} decisions on trial; {trial.outlook.sentence()}")
        for name, course in (trial.courses if trial else {}).items():
            looks = [f"{look.z:.2f} of {look.bound:.2f} at {look.decisions}" for look in course.looks[-LOOKS_SHOWN:]]
            why.append(f"looks at {name}: {', '.join(looks)}")
        numbers = str(row["decisions"]), f"{row['blend']:.2f}", f"{row['created_at']:%F %R}"
        table.add_row(f"q-{row['version']}", row["status"], *numbers, "\n".join(why))
    out.print(table)


@commands.command()
def orders(
    least: Annotated[
        int, typer.Option("--at-least", min=1, help="only profiles with at least so many replayed runs")
    ] = 20,
) -> None:
    """Compare the orders over all profiles, to choose CASEBANK_FIRST_ORDER; print only sums, without users' names."""

    async def work() -> tuple[ReplayTotals, str]:
        async with parts(only_reads=True) as runtime:
            return await totals(runtime.database, least), runtime.settings.first_order

    total, first_order = run(work())
    out.print(f"{total.profiles} profiles with at least {least} replayed runs, {total.questions} runs in all")
    if not total.profiles:
        return
    table = Table("order", "", "worked first", "faded loss", "profiles")
    for each in total.orders:
        table.add_row(each.order, SPOKEN[each.order], f"{each.first:.1%}", f"{each.charges:.1f}", str(each.serves))
    out.print(table)
    out.print(f"profiles: those that the order serves now; new ones start with {first_order}")


def _replayed(replay: StoredReplay | None) -> RenderableType:
    """Returns the replay for the terminal."""
    if replay is None:
        return "no replay yet: it needs a finished case"
    if not replay.questions:
        return replay.sentence()
    table = Table("order", "worked first", "95 % interval", "nDCG@4", "")
    for name, tally in replay.tallies.items():
        interval = f"{tally.low:.0%} to {tally.high:.0%}"
        role = "serves" if name == CHOICE else "chosen now" if name == replay.serves else ""
        table.add_row(SPOKEN[name], f"{tally.first:.0%}", interval, f"{tally.ndcg:.2f}", role)
    return Group(replay.sentence(), table)
