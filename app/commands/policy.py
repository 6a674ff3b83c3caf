"""``casebank policy``: shows the policies of a profile, takes one out of service, and compares orders over all."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from sqlalchemy import RowMapping

from app.impact.report import compared
from app.terminal.command_line import Agent, User, checked, parts
from app.terminal.plain_console import out
from app.terminal.run_to_end import runs_to_end
from policy.replay import CHOICE
from policy.verdict import trial_of
from retrieval.pages.listing import known_profile
from writer.replays.installation import totals
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


LOOKS_SHOWN = 3
"""Number of a trial's latest looks that are printed; at a look the gate compares the evidence with its bound."""


@commands.command()
@runs_to_end
async def rollback(user: User, agent: Agent) -> None:
    """Take the serving policy out of service; the order that replay chose serves instead."""
    async with parts() as runtime, runtime.database.as_user(checked(user), datetime.now(UTC)) as connection:
        version = await roll_back(connection, user, agent, actor="casebank policy rollback")
    out.print(f"q-{version} serves no more")


@commands.command()
@runs_to_end
async def show(user: User, agent: Agent) -> None:
    """Show what a replay of the profile's runs says of each order, runs with and without a case, and its policies."""
    now = datetime.now(UTC)
    async with parts(only_reads=True) as runtime, runtime.database.as_user(checked(user), now) as connection:
        profile = await known_profile(connection, user, agent)
        out.print(_replayed(replay := await stored_replay(connection, user, agent)), soft_wrap=True)
        if replay and (words := await telling_words(connection, runtime.keyring, user, agent, replay.fit)):
            out.print(f"words that tell the kinds of tasks apart: {', '.join(words)}", soft_wrap=True)
        out.print(await compared(connection, user, agent, now), soft_wrap=True)
        policies = (await connection.execute(versions(user, agent))).mappings().all()
        decisions = (await connection.execute(rewarded(user, agent))).scalar_one()
    if policies:
        out.print(_as_table(policies))
    elif profile.learning and profile.canary:
        needed = f"it needs {Demand().decisions} rewarded decisions, not all of one reward, and there are {decisions}"
        out.print(f"no trained policy yet: {needed}; until then the order that replay chose serves", soft_wrap=True)
    else:
        off = "learning or its trials are off (`learning` and `canary` of the profile)"
        text = f"no trained policy, and none is trained: {off}; the order that replay chose serves"
        out.print(text, soft_wrap=True)


def _as_table(policies: Sequence[RowMapping]) -> Table:
    table = Table("policy", "status", "decisions", "blend", "trained", "why")
    for row in policies:
        why = list(row["verdict"]["reasons"]) if row["verdict"] else []
        trial = trial_of(row["verdict"])
        if trial is not None and row["status"] == "candidate":
            why.append(f"{trial.decisions} decisions on trial; {trial.outlook.sentence()}")
        for name, course in (trial.courses if trial else {}).items():
            if looks := [
                f"{each.z:.2f} of {each.bound:.2f} at {each.decisions}" for each in course.looks[-LOOKS_SHOWN:]
            ]:
                why.append(f"looks at {name}: {', '.join(looks)}")
        numbers = str(row["decisions"]), f"{row['blend']:.2f}", f"{row['created_at']:%F %R}"
        table.add_row(f"q-{row['version']}", row["status"], *numbers, "\n".join(why))
    return table


@commands.command()
@runs_to_end
async def orders(
    least: Annotated[
        int, typer.Option("--at-least", min=1, help="only profiles with at least so many questions in their replay")
    ] = 20,
) -> None:
    """Compare the orders over all profiles, to choose CASEBANK_FIRST_ORDER; print only sums, without users' names."""
    async with parts(only_reads=True) as runtime:
        profiles, questions, sums = await totals(runtime.database, least)
    out.print(
        f"{profiles} profiles with at least {least} questions in their replay, {questions} in all"
        " (a question: a run that went well and that an earlier run answers)",
        soft_wrap=True,
    )
    if not profiles:
        return
    table = Table("order", "", "worked first", "faded loss", "profiles")
    for each in sums:
        table.add_row(each.order, SPOKEN[each.order], f"{each.first:.1%}", f"{each.charges:.1f}", str(each.serves))
    out.print(table)
    out.print(f"profiles: those that the order serves now; new ones start with {runtime.settings.first_order}")


def _replayed(replay: StoredReplay | None) -> RenderableType:
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
