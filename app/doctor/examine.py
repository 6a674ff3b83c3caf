"""Runs the checks; one that breaks does not stop the others."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from app.doctor import database, machine, memory
from app.doctor.installation import CheckResult, Installation, in_brief, opened
from app.settings import Settings
from app.terminal.which_database import database_of

Check = Callable[[Installation], Awaitable[CheckResult]]
Look = Callable[[Settings], CheckResult]
Subject = TypeVar("Subject", Settings, Installation)

BEFORE: tuple[Look, ...] = (
    machine.software,
    machine.variables,
    machine.redaction,
    machine.disk,
    machine.open_files,
    machine.secrets,
    machine.tokens,
)
"""Checks without a connection, in the order of the report."""

CHECKS: Mapping[Check, bool] = {
    database.postgres: True,
    database.pgvector: True,
    database.schema: True,
    database.cluster: False,
    database.indexes: False,
    database.search: False,
    database.role: False,
    database.login: True,
    database.row_security: False,
    database.isolation: False,
    database.clock: True,
    memory.worker: False,
    memory.queue: False,
    memory.jobs: False,
    memory.keys: False,
    memory.embedder: True,
    memory.language_model: True,
    memory.embedding_models: False,
    database.sizes: False,
}
"""Checks with a connection, in the order of the report.

False: the check would find faults that `casebank migrate` corrects, and waits for it.
"""


async def examine(settings: Settings) -> dict[str, CheckResult]:
    """Returns the findings of all checks by name, in a fixed order; a check that breaks is a finding, too."""
    findings = {_name(look): await _finding(look, settings) for look in BEFORE}
    where = "the database"
    try:
        where = database_of(settings)
        async with opened(settings) as installation:
            findings["connection"] = CheckResult(ok=True, detail=where)
            # with another schema, the checks that depend on it wait for the migration
            migrated = (await _finding(database.schema, installation)).ok
            later = CheckResult(ok=None, detail="can be judged after casebank migrate")
            for check, any_schema in CHECKS.items():
                findings[_name(check)] = await _finding(check, installation) if migrated or any_schema else later
    except Exception as error:  # noqa: BLE001 - whatever it was, the report must come out
        of_url, of_home = "is the database running, and DATABASE_URL right?", "see postgres.log in the home folder"
        advice = of_url if settings.database_url else of_home
        findings["connection"] = CheckResult(ok=False, detail=f"{where}: {in_brief(error)}", advice=advice)
    return findings


def _name(check: Check | Look) -> str:
    return check.__name__.replace("_", " ")


async def _finding(check: Callable[[Subject], CheckResult | Awaitable[CheckResult]], subject: Subject) -> CheckResult:
    try:
        found = check(subject)
        return found if isinstance(found, CheckResult) else await found
    except Exception as error:  # noqa: BLE001 - as above
        advice = "the check itself failed: look at the ones before it, and at the settings"
        return CheckResult(ok=False, detail=in_brief(error), advice=advice)
