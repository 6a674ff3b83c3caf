"""Runs an experiment against a service of its own: started as `casebank serve` would be, stopped at the end."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from app.demo.main import own_command
from app.processes.own_service import own_service
from app.runtime import owner_url
from app.settings import Settings
from examples.clerk.environment import ClerksOffice
from examples.experiment.files import write_files
from examples.experiment.report import Report
from examples.experiment.run import run_experiment
from examples.experiment.tables import print_report
from examples.operator.environment import DatabaseOperator
from examples.scienceworld.environment import ScienceWorld
from examples.world import Adapter

ENVIRONMENTS: dict[str, Callable[[str], Adapter]] = {
    "operator": DatabaseOperator,
    "office": lambda _dsn: ClerksOffice(),
    "scienceworld": lambda _dsn: ScienceWorld(),
}
"""Factories of adapters by name; the argument is the URL of a database beside which scratch databases may be made."""


async def experiment(settings: Settings, environment: str, wanted: Mapping[str, Any], out_dir: Path) -> Report:
    """Runs the experiment under a new user, so that every bank begins empty; prints and writes the report.

    Args:
        settings: settings of the service.
        environment: one of ENVIRONMENTS.
        wanted: fields of Size that differ from the adapter's.
        out_dir: folder for the files.
    """
    console = Console()
    user = f"experiment-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    async with (
        owner_url(settings) as dsn,
        own_service(settings) as service,
        service.client(user) as client,
    ):
        adapter = ENVIRONMENTS[environment](dsn)
        report = await run_experiment(adapter, client, replace(adapter.size, **wanted), console)
    print_report(report, console)
    for kind, path in write_files(report, out_dir).items():
        console.print(f"  {kind}: {path}", markup=False)
    command = own_command(Path(sys.executable), os.environ.get("PATH"), Path.cwd())
    purge = f"  {command} purge --user {user} deletes what was remembered"
    console.print(purge, markup=False, highlight=False, soft_wrap=True)
    return report
