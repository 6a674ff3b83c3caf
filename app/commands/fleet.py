"""``casebank fleet``: lists the policies that the users of each agent share, and the progress of trials."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from sqlalchemy import RowMapping, func, select

from app.terminal.command_line import parts
from app.terminal.run_to_end import run_to_end as run
from retrieval.database.rows import Rows
from retrieval.ranking.policies import name_of
from retrieval.search.fleet import is_filled
from retrieval.tables.columns import SHARED
from retrieval.tables.fleets import contributions
from retrieval.tables.policies import policies
from writer.training.progress import trial_of

out = Console()


def show_fleets() -> None:
    """List each agent's fleet policies, the number of users who share, and the progress of trials."""

    async def work() -> tuple[str, Sequence[RowMapping], dict[str, int]]:
        async with parts() as runtime, runtime.database.as_worker() as connection:
            rows = (await connection.execute(every_policy())).mappings().all()
            counted = {row.agent_key: row.users for row in await connection.execute(givers())}
            return runtime.settings.fleet, rows, counted

    fleet, rows, counted = run(work())
    out.print(f"CASEBANK_FLEET is {fleet}")
    table = Table("agent", "users who share", "policy", "status", "users", "decisions", "trained", "trial")
    for agent in sorted({*counted, *(row["agent_key"] for row in rows)}):
        found = [row for row in rows if row["agent_key"] == agent]
        gives = str(counted.get(agent, 0))
        if not found:
            table.add_row(agent, gives, "", "nothing yet")
        for row in found:
            table.add_row(agent, gives, *_told(row))
    out.print(table)


def _told(row: RowMapping) -> tuple[str, ...]:
    trial = trial_of(row["verdict"])
    status = row["status"] if row["is_filled"] else f"{row['status']}, to be trained again"
    said = trial.sentence() if trial is not None and row["status"] == "candidate" else ""
    name = name_of(SHARED, row["version"])
    return name, status, str(row["users"] or ""), str(row["decisions"]), f"{row['created_at']:%F %R}", said


def every_policy() -> Rows:
    """Returns the statement for the fleets' policies that were ever on trial, the newest of each agent first."""
    shown = ("agent_key", "version", "status", "decisions", "verdict", "created_at")
    users = policies.c.metrics["users"].as_integer().label("users")
    return (
        select(*(policies.c[name] for name in shown), users, is_filled(policies).label("is_filled"))
        .where(policies.c.user_sub == SHARED, policies.c.agent_key != SHARED)
        .where((policies.c.status != "retired") | policies.c.verdict.is_not(None))
        .order_by(policies.c.agent_key, policies.c.version.desc())
    )


def givers() -> Rows:
    """Returns the statement that counts the users who share with each agent's fleet."""
    return (
        select(contributions.c.agent_key, func.count().label("users"))
        .group_by(contributions.c.agent_key)
        .order_by(contributions.c.agent_key)
    )
