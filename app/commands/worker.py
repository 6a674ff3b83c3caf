"""``casebank worker``: runs a worker in a process of its own."""

from typing import Annotated

import typer

from app import logs
from app.jobs.jobs import beside
from app.jobs.metrics import serve_alone
from app.jobs.schedule import worker_jobs
from app.runtime import running
from app.settings import Settings
from app.terminal.command_line import warn_of_unknown_variables
from app.terminal.run_to_end import runs_to_end, until_told_to_stop
from app.terminal.which_database import database_of
from retrieval.telemetry import log


@runs_to_end
async def worker(
    metrics_port: Annotated[
        int, typer.Option(min=0, max=65_535, help="port of its /metrics on the loopback address; 0: no metrics")
    ] = 8701,
) -> None:
    """Run a worker in a process of its own, beside or in place of the service's worker."""
    settings = Settings()
    warn_of_unknown_variables()
    logs.as_json(settings.log_level)
    if metrics_port:
        serve_alone(metrics_port)
    async with (
        running(settings) as runtime,
        beside([runtime.worker.wakes.listen, *(job.run for job in worker_jobs(runtime))]),
    ):
        log.info("worker.database", database=database_of(settings))
        await until_told_to_stop(runtime.worker.run())
