"""The whole service on a database of its own, called in process; a client for each user that a test makes up."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI
from sqlalchemy import text

from app.auth.tokens import ACT_AS, issue_token
from app.main import create_app
from app.runtime import Runtime
from app.settings import Settings

SETTLES_WITHIN_S = 60
AGENT = "operator"


@dataclass(frozen=True)
class Service:
    """The running service; every client calls it with all that HTTP would add, but for the socket."""

    app: FastAPI
    settings: Settings
    stack: AsyncExitStack = field(repr=False)

    @property
    def runtime(self) -> Runtime:
        return self.app.state.runtime

    def token(self, user: str, *, age: timedelta = timedelta(), audience: str = "", scope: str = "") -> str:
        """A token that was issued ``age`` ago and good for an hour."""
        return issue_token(
            self.settings.signing_secret,
            user=user,
            issuer=self.settings.jwt_issuer,
            audience=audience or self.settings.jwt_audience,
            ttl=timedelta(hours=1),
            now=datetime.now(UTC) - age,
            scope=scope,
        )

    async def http(self, token: str | None) -> httpx.AsyncClient:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        client = httpx.AsyncClient(transport=transport, base_url="http://casebank", headers=headers)
        return await self.stack.enter_async_context(client)

    async def until(self, done: Callable[[], Awaitable[bool]]) -> None:
        """Waits until it is done, before the test gives up: asks after each look of the worker at its queues.

        What costs a question is the database. Another process may do the work, so it also asks four times a second.
        """
        worker = self.runtime.worker
        async with asyncio.timeout(SETTLES_WITHIN_S):
            while True:
                looked_at = worker.looked_at
                if await done():
                    return
                for _ in range(25):
                    if worker.looked_at != looked_at:
                        break
                    await asyncio.sleep(0.01)

    async def user(self, name: str = "") -> "User":
        name = name or f"user-{uuid4()}"
        return User(name, self, await self.http(self.token(name)))


@dataclass(frozen=True)
class User:
    """A user who calls the service."""

    name: str
    service: Service
    http: httpx.AsyncClient

    async def backend(self) -> "User":
        """The same user, for whom a service acts: it may say what a metric or a judge says."""
        http = await self.service.http(self.service.token("backend", scope=ACT_AS))
        http.headers["X-Casebank-User"] = self.name
        return User(self.name, self.service, http)

    async def retain(self, task: str, key: str | None = None, **more: Any) -> str:
        """Retains a run, successful unless it says otherwise, and returns the id of its case."""
        headers = {} if key is None else {"Idempotency-Key": key}
        body = {"agent": AGENT, "task": task, "outcome": "success", **more}
        answer = await self.http.post("/v1/retain", json=body, headers=headers)
        assert answer.status_code == 202, answer.text
        return answer.json()["case_id"]

    async def retrieve(self, query: str, **more: Any) -> dict[str, Any]:
        answer = await self.http.post("/v1/retrieve", json={"agent": AGENT, "query": query, **more})
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def feedback(self, **body: Any) -> dict[str, Any]:
        answer = await self.http.post("/v1/feedback", json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def case(self, case_id: str) -> dict[str, Any]:
        answer = await self.http.get(f"/v1/cases/{case_id}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def cases(self, **query: Any) -> list[dict[str, Any]]:
        answer = await self.http.get("/v1/cases", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()["cases"]

    async def settle(self, *queues: str) -> None:
        """Waits until the worker has finished the user's rows of the queues: cases and their lessons by default."""
        pending = "SELECT 1 FROM {} WHERE user_sub = :user_sub AND status = 'pending'"
        waiting = " UNION ALL ".join(map(pending.format, queues or ("cases", "reflections")))

        async def done() -> bool:
            return not await self.rows(waiting)

        self.service.runtime.worker.wake()  # for what the test queued by itself
        await self.service.until(done)

    async def queries(self) -> list[tuple[str, str | None]]:
        """What was asked and what was searched for in its place, opened, as the log of decisions has it."""
        columns = "SELECT id, query, rewritten, words FROM decisions WHERE user_sub = :user_sub ORDER BY id"
        runtime = self.service.runtime
        async with runtime.database.as_user(self.name, datetime.now(UTC)) as connection:
            rows = (await connection.execute(text(columns), {"user_sub": self.name})).mappings().all()
            words = await runtime.keyring.find_or_make(connection, self.name)
        opened = [words.open_query(row) for row in rows]
        return [(each["query"], each["rewritten"]) for each in opened]

    async def damage(self, table: str, column: str, where: str) -> None:
        """Flips the last bit of the encrypted text in one of the user's rows."""
        flipped = f"set_byte({column}, length({column}) - 1, get_byte({column}, length({column}) - 1) # 1)"
        statement = f"UPDATE {table} SET {column} = {flipped} WHERE user_sub = :user_sub AND {where} RETURNING 1"  # noqa: S608
        assert len(await self.rows(statement)) == 1

    async def rows(self, statement: str, **parameters: Any) -> list[Any]:
        """What the statement reads as this user; ``:user_sub`` is theirs."""
        database = self.service.runtime.database
        async with database.as_user(self.name, datetime.now(UTC)) as connection:
            return list((await connection.execute(text(statement), {"user_sub": self.name, **parameters})).all())


@asynccontextmanager
async def with_model(home: Path, database_url: str, model_url: str, **more: Any) -> AsyncIterator[Service]:
    """The running service with a language model, for which it has time enough."""
    settings = Settings(
        home=home,
        database_url=database_url,
        jwt_secret="a secret of at least thirty-two bytes",
        master_key="5" * 64,
        worker_pace={"poll_s": 60, "backoff_s": 0.01},
        explore=False,
        llm="openai",
        llm_base_url=model_url,
        llm_model="made-up",
        timeouts_s={"llm_request": 30, "llm": 30, "llm_rewrite": 30, "turn": 60},
        **more,
    )
    app = create_app(settings)
    async with AsyncExitStack() as clients, app.router.lifespan_context(app):
        yield Service(app, settings, clients)


@pytest.fixture(scope="module")
async def service(database_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    settings = Settings(
        home=Path(tmp_path_factory.mktemp("home")),
        database_url=database_url,
        jwt_secret="a secret of at least thirty-two bytes",
        master_key="5" * 64,
        worker_pace={"poll_s": 60, "backoff_s": 0.01},
        timeouts_s={"turn": 60},  # a busy machine is not what is tested
        explore=False,  # a test asks for what it wants to see; tests of exploration ask for that
    )
    app = create_app(settings)
    async with AsyncExitStack() as clients, app.router.lifespan_context(app):
        yield Service(app, settings, clients)


@pytest.fixture
async def alice(service: Service) -> User:
    return await service.user()


@pytest.fixture
async def bob(service: Service) -> User:
    return await service.user()
