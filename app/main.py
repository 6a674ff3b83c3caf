"""The service: the routes, with everything they need started before the first request and stopped after the last."""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI

from app import postgres, problems
from app.jobs import upkeep
from app.limits import BodyLimit
from app.routes import bank, health, llm, loop, policy, procedures, tools
from app.runtime import Runtime, make_verifier, running
from app.settings import Settings
from app.training.processes import Trainings
from retrieval.errors import DatabaseUnavailable
from retrieval.telemetry import log

DESCRIPTION = """Memory for agents that learns which memories help.

Call `retrieve` before the agent acts and `retain` after. Every answer that is not a success is an
[RFC 9457](https://www.rfc-editor.org/rfc/rfc9457) problem document."""

REVIVE_EVERY_S = 1.0


def create_app(settings: Settings) -> FastAPI:
    """Returns the service for these settings; nothing is started until the server runs it."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        trainings = Trainings(settings)
        async with running(settings) as runtime, _background(_jobs(settings, runtime, trainings)):
            app.state.runtime = runtime
            app.state.trainings = trainings
            gc.freeze()  # what was made so far stays: the collector need not look at it again
            try:
                yield
            finally:
                await trainings.close()

    app = FastAPI(title="casebank", version="0.1.0", description=DESCRIPTION, lifespan=lifespan)
    app.state.verifier = make_verifier(settings)
    app.add_middleware(BodyLimit, max_bytes=settings.max_body_bytes)
    problems.install(app)
    for routes in (loop, llm, bank, procedures, policy, tools, health):
        app.include_router(routes.router)
    return app


def _jobs(settings: Settings, runtime: Runtime, trainings: Trainings) -> list[Callable[[], Awaitable[None]]]:
    jobs: list[Callable[[], Awaitable[None]]] = [lambda: upkeep(runtime), trainings.nightly]
    if settings.worker_in_service:
        jobs.append(runtime.worker.run)
    if settings.database_url is None:
        jobs.append(lambda: _keep_postgres(runtime))
    return jobs


async def _keep_postgres(runtime: Runtime) -> None:
    """Starts the embedded Postgres again whenever it died."""
    while True:
        await asyncio.sleep(REVIVE_EVERY_S)
        try:
            async with runtime.database.as_worker():  # it answers: far cheaper to ask than a start that finds it up
                continue
        except DatabaseUnavailable:
            pass
        try:
            await asyncio.to_thread(postgres.start, runtime.settings.home)
        except postgres.EmbeddedPostgresFailed as error:
            log.error("postgres.start_failed", detail=str(error)[:500])


@asynccontextmanager
async def _background(jobs: list[Callable[[], Awaitable[None]]]) -> AsyncIterator[None]:
    """Runs the jobs beside what is inside, and cancels them after it."""
    tasks = [asyncio.ensure_future(job()) for job in jobs]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
