"""``casebank migrate``: migrates the tables of the database to a revision."""

from typing import Annotated

import typer

from app.postgres.citus import distribute
from app.postgres.migrate import migrate as migrate_database
from app.runtime import owner_url
from app.settings import Settings
from app.terminal.plain_console import out
from app.terminal.run_to_end import runs_to_end
from app.terminal.which_database import tell_database


@runs_to_end
async def migrate(
    revision: Annotated[str, typer.Argument(help="revision, or head for the newest, or base for none")] = "head",
    *,
    citus: Annotated[
        bool, typer.Option("--citus", help="then distribute the tables over the Citus cluster; may be repeated")
    ] = False,
) -> None:
    """Migrate the database's schema to a revision."""
    settings = Settings()
    async with owner_url(settings) as url:
        tell_database(settings)
        reached = await migrate_database(url, revision, pgvector=settings.pgvector)
        distributed = await distribute(url) if citus else []
    out.print(f"schema at {reached}" + (f", {len(distributed)} tables distributed" if citus else ""))
