"""The service: the routes, with everything they need started before the first request and stopped after the last."""

import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from fastapi import FastAPI

from app import problems
from app.jobs import beside
from app.limits import BodyLimit
from app.routes import bank, health, llm, loop, policy, procedures, tools
from app.runtime import Runtime, make_verifier, running
from app.schedule import jobs_of, sign_of_life
from app.settings import Settings
from app.training.processes import Trainings

DESCRIPTION = """Memory for agents that learns which memories help.

Call `retrieve` before the agent acts and `retain` after. Every answer that is not a success is an
[RFC 9457](https://www.rfc-editor.org/rfc/rfc9457) problem document."""


def create_app(settings: Settings) -> FastAPI:
    """Returns the service for these settings; nothing is started until the server runs it."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        trainings = Trainings(settings)
        async with running(settings) as runtime, beside(_endless(runtime, trainings)):
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


def _endless(runtime: Runtime, trainings: Trainings) -> list[Callable[[], Awaitable[None]]]:
    """Returns what runs beside the requests: the jobs and, unless a process of its own has that part, the worker."""
    endless: list[Callable[[], Awaitable[None]]] = [job.run for job in jobs_of(runtime, trainings)]
    if runtime.settings.worker_in_service:
        endless += [runtime.worker.run, sign_of_life(runtime).run]
    return endless
