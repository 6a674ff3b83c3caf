"""The service: the routes, and the parts that start before the first request and stop after the last."""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI
from fastapi_offline import FastAPIOffline

from app import __version__
from app.console import routes as console
from app.console.page import Doors
from app.console.render import compile_templates
from app.edge import openapi, problems
from app.edge.intake.route import Intake, include
from app.edge.requests import Follow
from app.jobs.jobs import beside
from app.jobs.schedule import jobs_of, sign_of_life
from app.routes import (
    advice,
    bank,
    begin_again,
    checkpoints,
    decisions,
    facts,
    findings,
    health,
    impact,
    knowledge,
    llm,
    loop,
    mcp,
    memory_tools,
    policy,
    procedures,
    recall,
    runs,
    sessions,
    statistics,
    tools,
)
from app.runtime import Runtime, make_verifier, running
from app.settings import Settings
from app.settings.texts import networks, origins
from app.terminal.run_to_end import PlainRefusal
from app.training.processes import Trainings
from retrieval.errors import SchemaOutdated

DESCRIPTION = """Memory for agents that learns which memories help.

Call `retrieve` before the agent acts and `retain` after. Every answer that is not a success is an
[RFC 9457](https://www.rfc-editor.org/rfc/rfc9457) problem document."""


def create_app(settings: Settings) -> FastAPI:
    """Returns the service for these settings; its parts start when the server runs it."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        trainings = Trainings(settings)
        async with running(settings) as runtime, beside(_endless(runtime, trainings)):
            with suppress(SchemaOutdated):  # requests are refused until it is migrated
                await app.state.verifier.revocations.refresh(runtime.database)
            app.state.verifier.revocations.rest = runtime.rest
            app.state.runtime = runtime
            app.state.trainings = trainings
            compiled = asyncio.create_task(asyncio.to_thread(compile_templates))  # before the first page is requested
            gc.freeze()  # objects made so far stay: the collector need not look at them again
            try:
                yield
            finally:
                await compiled
                await trainings.close()
                await intake.aside.close()

    app = FastAPIOffline(
        redirect_slashes=False,  # a redirect would lead to whatever address the request's Host header names
        redoc_url=None,  # it would fetch a picture
        swagger_ui_parameters={"validatorUrl": None},  # or each reader's browser would send this address to a stranger
        title="casebank",
        version=__version__,
        description=DESCRIPTION,
        lifespan=lifespan,
    )
    app.state.settings = settings
    app.state.verifier = make_verifier(settings)
    app.state.operator_networks = networks(settings.operator_from)
    app.state.console = Doors(settings, origins(settings.console))
    app.state.intake = intake = Intake.of(settings)
    app.add_middleware(PlainRefusal)
    app.add_middleware(mcp.open_to_pages, settings=settings)
    app.add_middleware(Follow)  # the last added is the outermost
    problems.install(app)
    openapi.install(app)
    memories = (runs, findings, sessions, facts, knowledge, checkpoints, recall, procedures)
    settings_of_agents = (llm, statistics, bank)  # in this order: the last takes any path below an agent
    others = (begin_again, policy, tools, memory_tools, mcp)
    for routes in (loop, advice, decisions, impact, *memories, *settings_of_agents, *others):
        include(app, routes.router)
    include(app, mcp.metadata)
    console.add(app)
    include(app, health.router)
    return app


def _endless(runtime: Runtime, trainings: Trainings) -> list[Callable[[], Awaitable[None]]]:
    """Returns the endless functions beside the requests: the jobs and, unless it has its own process, the worker."""
    endless: list[Callable[[], Awaitable[None]]] = [runtime.rest.keep]
    endless += [job.run for job in jobs_of(runtime, trainings)]
    if runtime.settings.worker_in_service:
        endless += [runtime.worker.run, runtime.worker.wakes.listen, sign_of_life(runtime).run]
    else:
        endless.append(runtime.worker.wakes.pass_on)
    return endless
