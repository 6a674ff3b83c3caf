"""Runs an experiment against a service of its own: started as `casebank serve` would be, stopped at the end."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console

from app.agents.operator.environment import DatabaseOperator
from app.agents.scienceworld.environment import ScienceWorld
from app.agents.world import Adapter
from app.auth import issue_token
from app.demo.main import own_service
from app.experiment.files import write_files
from app.experiment.report import Report, print_report
from app.experiment.run import run_experiment
from app.runtime import owner_url
from app.settings import Settings

ENVIRONMENTS: dict[str, Callable[[str], Adapter]] = {
    "operator": DatabaseOperator,
    "scienceworld": lambda _dsn: ScienceWorld(),
}
"""By name: what makes the adapter; each is given a database where scratch databases may be made."""


async def experiment(settings: Settings, environment: str, wanted: Mapping[str, Any], out_dir: Path) -> Report:
    """Runs the experiment under a user of its own, so that every bank begins empty; prints and writes what it found.

    Args:
        settings: of the service.
        environment: one of ENVIRONMENTS.
        wanted: the fields of Size that shall differ from the adapter's.
        out_dir: where the files go.
    """
    console = Console()
    now = datetime.now(UTC)
    user = f"experiment-{now:%Y%m%d-%H%M%S}"
    token = issue_token(
        settings.signing_secret,
        user=user,
        issuer=settings.jwt_issuer,
        audience=settings.jwt_audience,
        ttl=timedelta(days=1),
        now=now,
    )
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        owner_url(settings) as dsn,
        own_service() as base_url,
        httpx.AsyncClient(base_url=base_url, headers=headers, timeout=30) as client,
    ):
        adapter = ENVIRONMENTS[environment](dsn)
        report = await run_experiment(adapter, client, replace(adapter.size, **wanted), console)
    print_report(report, console)
    for kind, path in write_files(report, out_dir).items():
        console.print(f"  {kind}: {path}", markup=False)
    console.print(f"  casebank purge --user {user} takes away what was remembered", markup=False, highlight=False)
    return report
