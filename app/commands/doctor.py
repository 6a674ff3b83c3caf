"""``casebank doctor``: checks the installation and prints the findings."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table

from app import logs
from app.doctor import CheckResult, examine
from app.settings import Settings
from app.terminal.plain_console import out
from app.terminal.run_to_end import runs_to_end


@runs_to_end
async def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="print the findings as JSON")] = False,
) -> None:
    """Check this machine, the settings and the database; exit with status 1 if a check fails."""
    logs.quiet()
    findings = await examine(Settings())
    if as_json:
        typer.echo(json.dumps([{"name": name, **asdict(finding)} for name, finding in findings.items()], indent=2))
    else:
        out.print(as_table(findings))
    if any(finding.ok is False for finding in findings.values()):
        raise typer.Exit(1)


def as_table(findings: Mapping[str, CheckResult]) -> Table:
    """Returns the findings for the terminal."""
    table = Table("check", "")
    for name in ("finding", "what to do"):
        table.add_column(name, overflow="fold")  # a path that is cut could not be copied
    for check, finding in findings.items():
        mark = {True: "ok", False: "BAD", None: "-"}[finding.ok]
        table.add_row(check, mark, finding.detail, "" if finding.ok else finding.advice)
    return table
