"""Moves a database's schema to a revision, by the migrations that come with the packages."""

from collections.abc import Callable

from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from alembic import command
from app.postgres.pools import engine_of
from app.postgres.revisions import MigrationRefused, SchemaInUse, folder
from retrieval.database.database import sqlstate
from retrieval.patterns import read

LOCK_NOT_AVAILABLE = "55P03"
ROLES = ("casebank_service", "casebank_worker", "casebank_eraser")

_SQL = read("app.postgres", "statements.toml")["rights"]

Act = Callable[[Connection, Config], None]


async def migrate(url: str, revision: str = "head", *, pgvector: str = "auto") -> str:
    """Moves the schema up or down to the revision, and returns the full name of the one that it is now at.

    The URL must log in as the owner of the tables; ``revision`` may be the beginning of a name, or relative (``-1``).

    Raises:
        SchemaInUse: another transaction holds a table that is to change.
        MigrationRefused: the login lacks rights, or this version lacks the revision, or the one of the database.
    """

    def move(connection: Connection, config: Config) -> None:
        if lacking := missing_rights(connection, pgvector=pgvector):
            raise MigrationRefused(f"the login may not migrate as it is: {'; '.join(lacking)}")
        current = MigrationContext.configure(connection).get_current_revision()
        if message := unknown_revision(current):
            raise MigrationRefused(message)
        if not revision:
            raise MigrationRefused("name a revision, or leave it out for the newest")
        # a revision below the current one is a downgrade; alembic wants to be told which, and else does nothing
        is_below = revision.startswith("-")
        if not revision.startswith(("-", "+")):
            script = ScriptDirectory.from_config(config)
            target = script.get_revision(revision)
            passed = {each.revision for each in script.iterate_revisions(current or "base", "base")}
            is_below = target is None or target.revision in passed - {current}
        go = command.downgrade if is_below else command.upgrade
        go(config, revision)
        reached.append(MigrationContext.configure(connection).get_current_revision() or "base")

    reached: list[str] = []
    try:
        await with_alembic(url, move, pgvector=pgvector)
    except CommandError as error:
        raise MigrationRefused(f"{error}".splitlines()[0]) from error
    except DBAPIError as error:
        if sqlstate(error) != LOCK_NOT_AVAILABLE:
            raise MigrationRefused(f"the database refused: {error.orig}".splitlines()[0]) from error
        raise SchemaInUse(
            "another transaction holds a table that the migration changes, so nothing was changed; try again when it"
            " has ended (pg_stat_activity shows it)"
        ) from error
    return reached[0]


def missing_rights(connection: Connection, *, pgvector: str = "auto") -> list[str]:
    """Returns the missing rights, as statements for a superuser, or as the login to use."""
    login = connection.execute(text(_SQL["login"])).one()
    if login.rolsuper:
        return []
    if login.migrated:
        return [f"log in as {owner}, who owns the tables" for owner in connection.scalars(text(_SQL["owners"]))]
    lacking = [] if login.creates else [f'GRANT CREATE ON SCHEMA public TO "{login.name}"']
    known = {row.rolname: row.admin for row in connection.execute(text(_SQL["roles"]), {"names": list(ROLES)})}
    if len(known) < len(ROLES) and not login.rolcreaterole:
        lacking.append(f'ALTER ROLE "{login.name}" CREATEROLE')
    foreign = [role for role, admin in known.items() if not admin]
    if foreign and (login.roles_have_admins or not login.rolcreaterole):
        lacking.append(f'GRANT {", ".join(sorted(foreign))} TO "{login.name}" WITH ADMIN OPTION')
    vector = None if pgvector == "off" else connection.execute(text(_SQL["vector"])).one_or_none()
    if vector is not None and not (vector.trusted and login.extends):
        lacking.append(f"CREATE EXTENSION vector, in the database {login.database} (or set CASEBANK_PGVECTOR=off)")
    return lacking


def unknown_revision(revision: str | None) -> str | None:
    """Returns advice for a database whose revision this version does not have; None: this version has the revision."""
    known = [each.revision for each in ScriptDirectory.from_config(configuration()).walk_revisions()]
    if revision is None or revision in known:
        return None
    here = f"the database is at revision {revision}, which this version does not have"
    if not revision.isdecimal():  # the names of the revisions before 0.1.0 are numbers
        return f"{here}: install the newer version again; to go back, it does `casebank migrate {known[0]}` first"
    return (
        f"{here}: `casebank export` each user with the version that wrote it, then `casebank backfill` each file into a"
        " new database with this one"
    )


def configuration() -> Config:
    """Returns alembic's configuration, with the folder of the migrations."""
    config = Config()
    config.set_main_option("script_location", str(folder()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


async def with_alembic(url: str, act: Act, *, pgvector: str = "auto") -> None:
    """Runs a command of alembic in one transaction; ``pgvector`` "off" treats the extension as missing."""
    engine = engine_of(url)
    try:
        async with engine.begin() as connection:

            def run(sync: Connection) -> None:
                config = configuration()
                config.attributes["connection"] = sync
                config.attributes["pgvector"] = pgvector
                act(sync, config)

            await connection.run_sync(run)
    finally:
        await engine.dispose()
