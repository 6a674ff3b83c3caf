"""``casebank doctor``: checks the installation and prints the findings."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table

from app import logs
from app.doctor import CheckResult, examine
from app.settings import Settings
from app.terminal.plain_console import plain_console
from app.terminal.run_to_end import run_to_end as run

out = plain_console()


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="print the findings as JSON")] = False,
) -> None:
    """Check this machine, the settings and the database; exit with status 1 if a check fails."""
    logs.quiet()
    findings = run(examine(Settings()))
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        out.print(as_table(findings))
    if any(finding.ok is False for finding in findings):
        raise typer.Exit(1)


def as_table(findings: Sequence[CheckResult]) -> Table:
    """Returns the findings for the terminal."""
    table = Table("check", "", "finding", "what to do")
    for finding in findings:
        mark = {True: "ok", False: "BAD", None: "-"}[finding.ok]
        table.add_row(finding.name, mark, finding.detail, "" if finding.ok else finding.advice)
    return table
