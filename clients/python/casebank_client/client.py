"""The two clients: one for synchronous backends, one for asyncio."""

import asyncio
import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import cached_property
from types import TracebackType
from typing import Any, Self, cast

import httpx

from casebank_client import bodies, wire
from casebank_client.answers import Advice, Feedback, Outcome, Retained, Retrieved, RewardSource, Session, TurnsAdded
from casebank_client.failed import ADVICE_S
from casebank_client.memories import AsyncMemories, Memories
from casebank_client.outbox import DiskBuffer, Outbox
from casebank_client.run import AsyncRun, Run
from casebank_client.wire import Patience, Request


class _Sender:
    """Sends requests and waits for their answers; what the synchronous client and both outboxes do."""

    def __init__(self, connection: Mapping[str, Any], patience: Patience) -> None:
        self._http = httpx.Client(**connection)
        self._patience = patience

    def send(self, request: Request, patience: Patience | None = None) -> Any:
        """Returns the JSON of the answer; see ``Casebank`` for what is raised."""
        patience = patience or self._patience
        try:
            for attempt in wire.attempts(patience):
                with attempt:
                    answer = self._http.request(**request.arguments(), timeout=patience.timeout_s)
                    return wire.read(answer, attempt.num)
        except wire.GIVEN_UP as error:
            raise wire.unreachable(error) from error
        raise AssertionError("there is always a first attempt")

    def send_within(self, request: Request, patience: Patience) -> Any:
        """Returns the JSON of the answer; a thread sends the request, because httpx bounds no whole request.

        Raises:
            TimeoutError: there is none after the longest time of the patience.
        """
        answer: Future[Any] = Future()

        def send() -> None:
            try:
                answer.set_result(self.send(request, patience))
            except BaseException as error:  # noqa: BLE001 - raised where it is waited for
                answer.set_exception(error)

        threading.Thread(target=send, name="casebank-call", daemon=True).start()
        return answer.result(patience.total_s)

    def close(self) -> None:
        self._http.close()


class _Client:
    """Base of both clients: connection and outbox; see ``Casebank`` for the arguments."""

    def __init__(  # noqa: PLR0913 - each is a setting with a name
        self,
        base_url: str,
        token: str,
        *,
        user: str | None = None,
        session: str | None = None,
        patience: Patience | None = None,
        buffer: DiskBuffer | None = None,
    ) -> None:
        self.patience = patience or Patience()
        headers = wire.headers_of(token, user, session)
        self._connection: dict[str, Any] = {
            "base_url": wire.address_of(base_url),
            "headers": headers,
            "timeout": self.patience.timeout_s,
            "verify": httpx.create_ssl_context(),  # read once: each client of httpx reads its own otherwise
        }
        self._buffer = None if buffer is None else replace(buffer, owner=wire.owner_of(base_url, token, user))
        self._by_process: dict[int, tuple[_Sender, Outbox]] = {}
        self.outbox.start()

    @property
    def outbox(self) -> Outbox:
        """Sends finished runs in the background."""
        return self._of_this_process()[1]

    @property
    def _sender(self) -> _Sender:
        return self._of_this_process()[0]

    def _of_this_process(self) -> tuple[_Sender, Outbox]:
        """Returns connections and an outbox; after a fork new ones, for threads and runs stay with the parent."""
        if (own := self._by_process.get(os.getpid())) is None:
            sender = _Sender(self._connection, self.patience)
            own = self._by_process.setdefault(os.getpid(), (sender, Outbox(sender.send, self._buffer)))
        return own


class Casebank(_Client, Memories):
    """Memory for a synchronous backend; close it, or use it in a ``with`` block.

    Every call raises ``CasebankUnreachable`` where casebank does not answer within the patience, and
    ``CasebankRefused`` where it will not do what was asked. A ``run`` raises neither: the agent goes on without memory.
    An address without http:// or https:// is a ValueError at once, and so is a user's name with spaces around it.

    Args:
        base_url: address of the service.
        token: token of the user, or of a service that acts for users.
        user: user of the memory, if the token is a service's.
        session: narrows the limits to one conversation.
        patience: timeout and number of attempts of a request.
        buffer: file for runs that casebank has not acknowledged yet; None: they are kept in memory only.
    """

    def retrieve(
        self, agent: str, query: str, *, recall: bool = False, within_s: float | None = None, **options: Any
    ) -> Retrieved:
        """Returns what may help with the query; ``options`` are further fields of ``POST /v1/retrieve``.

        With ``recall`` also what was said in any session and is known that has to do with it. ``within_s`` is as in
        ``ask``.
        """
        return cast("Retrieved", self.ask(bodies.retrieve(agent, query, options, recall=recall), within_s=within_s))

    def advice(
        self,
        agent: str,
        tool: str,
        input: Any = None,  # noqa: A002 - the API's own name for it
        output: Any = None,
        *,
        within_s: float | None = None,
        **options: Any,
    ) -> Advice:
        """Returns what put a failed call right in earlier runs; ``options`` are further fields of ``POST /v1/advice``.

        With ``within_s`` there is one attempt, and ``TimeoutError`` is raised if it takes more seconds than that.
        """
        request = bodies.advice(agent, tool, input, output, options)
        sent = (
            self._sender.send(request) if within_s is None else self._sender.send_within(request, wire.once(within_s))
        )
        return cast("Advice", sent)

    def retain(
        self, agent: str, task: str, outcome: Outcome = "unknown", *, idempotency_key: str | None = None, **more: Any
    ) -> Retained:
        """Keeps a finished run and returns once it is on disk; ``more`` are further fields of ``POST /v1/retain``.

        Tried again, it is sent under the same idempotency key, and kept once.
        """
        run = bodies.finished_run(agent, task, outcome, more=more)
        return cast("Retained", self._sender.send(bodies.retain(run, idempotency_key)))

    def feedback(
        self,
        *,
        retrieval_id: str | None = None,
        case_id: str | None = None,
        reward: float | None = None,
        thumb: str | None = None,
        source: RewardSource | None = None,
    ) -> Feedback:
        """Rewards a run, by its case or by its retrieval, and returns what that reached."""
        request = bodies.feedback(retrieval_id=retrieval_id, case_id=case_id, reward=reward, thumb=thumb, source=source)
        return cast("Feedback", self._sender.send(request))

    def add_turns(self, agent: str, session_id: str, turns: Sequence[Mapping[str, Any]]) -> TurnsAdded:
        """Adds messages of chat completions to a session, once; the first ones begin it."""
        return cast("TurnsAdded", self._sender.send(bodies.add_turns(agent, session_id, turns)))

    def read_session(self, session_id: str, token_budget: int = 2_000) -> Session:
        """Returns a session's newest turns that fit the budget, and by rule what was said before them."""
        return cast("Session", self._sender.send(bodies.read_session(session_id, token_budget)))

    def delete_session(self, session_id: str) -> None:
        """Deletes a session for good."""
        self._sender.send(bodies.delete_session(session_id))

    def ask(self, request: Request, *, within_s: float | None = None) -> Any:
        """Sends a request that has no method of its own here, and returns the JSON of its answer.

        With ``within_s`` all attempts together take no more seconds than that.
        """
        if within_s is None:
            return self._sender.send(request)
        patience = self.patience.within(within_s)
        try:
            return self._sender.send_within(request, patience)
        except TimeoutError:
            raise wire.late(patience) from None

    def run(
        self,
        agent: str,
        task: str,
        *,
        recall: bool = False,
        options: Mapping[str, Any] | None = None,
        advice_s: float = ADVICE_S,
        **more: Any,
    ) -> Run:
        """Returns a run, to be entered: it retrieves on the way in, and is retained in the background on the way out.

        An exception is a failure, and goes on; an outage of casebank costs the agent its memory and nothing else.

        Args:
            agent: agent of the run.
            task: task in words, which is also the query of the search.
            recall: true to add turns, facts and knowledge about the task to the context.
            options: further fields of the retrieve, such as ``k`` or ``token_budget``.
            advice_s: seconds that a failed call may wait for advice; 0: none is asked for.
            more: further fields of the retain, such as ``tags``.
        """
        return Run(agent, task, {"recall": recall, **(options or {})}, dict(more), client=self, advice_s=advice_s)

    def close(self) -> None:
        """Sends what waits, for some seconds at most, and closes the connections."""
        self.outbox.close()
        self._sender.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncCasebank(_Client, AsyncMemories):
    """Memory for a backend on asyncio, as ``Casebank``; a thread of its own retains runs in the background."""

    @cached_property
    def _by_loop(self) -> dict[asyncio.AbstractEventLoop, httpx.AsyncClient]:
        return {}

    @property
    def _http(self) -> httpx.AsyncClient:
        """Returns the connections of the running event loop; those of a loop that has ended are dropped."""
        loop = asyncio.get_running_loop()
        if loop not in self._by_loop:
            for ended in [each for each in list(self._by_loop) if each.is_closed()]:
                self._by_loop.pop(ended, None)
            self._by_loop[loop] = httpx.AsyncClient(**self._connection)
        return self._by_loop[loop]

    async def retrieve(
        self, agent: str, query: str, *, recall: bool = False, within_s: float | None = None, **options: Any
    ) -> Retrieved:
        """See ``Casebank.retrieve``."""
        request = bodies.retrieve(agent, query, options, recall=recall)
        return cast("Retrieved", await self.ask(request, within_s=within_s))

    async def advice(
        self,
        agent: str,
        tool: str,
        input: Any = None,  # noqa: A002 - the API's own name for it
        output: Any = None,
        *,
        within_s: float | None = None,
        **options: Any,
    ) -> Advice:
        """See ``Casebank.advice``."""
        request = bodies.advice(agent, tool, input, output, options)
        async with asyncio.timeout(within_s):
            return cast("Advice", await self._send(request, None if within_s is None else wire.once(within_s)))

    async def retain(
        self, agent: str, task: str, outcome: Outcome = "unknown", *, idempotency_key: str | None = None, **more: Any
    ) -> Retained:
        """See ``Casebank.retain``."""
        run = bodies.finished_run(agent, task, outcome, more=more)
        return cast("Retained", await self._send(bodies.retain(run, idempotency_key)))

    async def feedback(
        self,
        *,
        retrieval_id: str | None = None,
        case_id: str | None = None,
        reward: float | None = None,
        thumb: str | None = None,
        source: RewardSource | None = None,
    ) -> Feedback:
        """See ``Casebank.feedback``."""
        request = bodies.feedback(retrieval_id=retrieval_id, case_id=case_id, reward=reward, thumb=thumb, source=source)
        return cast("Feedback", await self._send(request))

    async def add_turns(self, agent: str, session_id: str, turns: Sequence[Mapping[str, Any]]) -> TurnsAdded:
        """See ``Casebank.add_turns``."""
        return cast("TurnsAdded", await self._send(bodies.add_turns(agent, session_id, turns)))

    async def read_session(self, session_id: str, token_budget: int = 2_000) -> Session:
        """See ``Casebank.read_session``."""
        return cast("Session", await self._send(bodies.read_session(session_id, token_budget)))

    async def delete_session(self, session_id: str) -> None:
        """See ``Casebank.delete_session``."""
        await self._send(bodies.delete_session(session_id))

    async def ask(self, request: Request, *, within_s: float | None = None) -> Any:
        """See ``Casebank.ask``."""
        if within_s is None:
            return await self._send(request)
        patience = self.patience.within(within_s)
        try:
            async with asyncio.timeout(patience.total_s):
                return await self._send(request, patience)
        except TimeoutError:
            raise wire.late(patience) from None

    def run(
        self,
        agent: str,
        task: str,
        *,
        recall: bool = False,
        options: Mapping[str, Any] | None = None,
        advice_s: float = ADVICE_S,
        **more: Any,
    ) -> AsyncRun:
        """See ``Casebank.run``; to be entered with ``async with``."""
        return AsyncRun(agent, task, {"recall": recall, **(options or {})}, dict(more), client=self, advice_s=advice_s)

    async def aclose(self) -> None:
        """Sends what waits, for some seconds at most, and closes the connections."""
        await asyncio.to_thread(self.outbox.close)
        self._sender.close()
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _send(self, request: Request, patience: Patience | None = None) -> Any:
        patience = patience or self.patience
        try:
            async for attempt in wire.attempts(patience):
                with attempt:
                    answer = await self._http.request(**request.arguments(), timeout=patience.timeout_s)
                    return wire.read(answer, attempt.num)
        except wire.GIVEN_UP as error:
            raise wire.unreachable(error) from error
        raise AssertionError("there is always a first attempt")
