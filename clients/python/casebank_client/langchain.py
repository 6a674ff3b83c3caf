"""Memory for LangChain's agents: a middleware that retrieves before the model and retains after the agent."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any
from uuid import uuid4

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain.agents.middleware.types import PrivateStateAttr
from langchain.messages import SystemMessage, ToolMessage
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import Runtime
from langgraph.types import Command

from casebank_client.client import Casebank
from casebank_client.run import Status
from casebank_client.watched import Judge, Watched, finished, with_advice

MOST_OPEN = 1_000
"""Runs that may be under way at once; with one more, the oldest is retained as aborted."""


class CasebankState(AgentState[Any]):
    """The agent's state, and which run of ours it is."""

    casebank_run: Annotated[str, PrivateStateAttr]


class CasebankMiddleware(AgentMiddleware[CasebankState]):
    """Memory for every run of an agent; put it first, so that it sees what the others made of an error.

    agent = create_agent(model, tools, middleware=[CasebankMiddleware(memory, "db-operator")])

    The task is the last thing that the user said. An exception of the model or of a tool is a failure and goes on; an
    interrupt is none. LangChain tells no middleware of an error anywhere else, such as a recursion limit: such a run is
    retained as aborted once ``MOST_OPEN`` others are under way, or on ``close``.

    Args:
        memory: the synchronous client, whose calls are made in a thread where the agent is asynchronous.
        agent: agent of the run in casebank.
        judge: says by the last message how the run ended; without it an end without an error is a success.
        more: further fields of the retain, such as ``tags``; ``advice_s=0`` asks for no advice at failed calls.
    """

    state_schema = CasebankState

    def __init__(self, memory: Casebank, agent: str, *, judge: Judge = finished, **more: Any) -> None:
        super().__init__()
        self._memory = memory
        self._agent = agent
        self._judge = judge
        self._more = more
        self._open: OrderedDict[str, Watched] = OrderedDict()

    def before_agent(self, state: CasebankState, runtime: Runtime[None]) -> dict[str, Any]:  # noqa: ARG002
        """Retrieves."""
        key, watched = self._new(state)
        watched.run.begin()
        return {"casebank_run": key}

    async def abefore_agent(self, state: CasebankState, runtime: Runtime[None]) -> dict[str, Any]:  # noqa: ARG002
        """Retrieves."""
        key, watched = self._new(state)
        await watched.begin()
        return {"casebank_run": key}

    def wrap_model_call(
        self, request: ModelRequest[None], handler: Callable[[ModelRequest[None]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Calls the model with what memory says behind the system prompt."""
        with self._errors(request.state):
            return handler(self._with_memory(request))

    async def awrap_model_call(
        self, request: ModelRequest[None], handler: Callable[[ModelRequest[None]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Calls the model with what memory says behind the system prompt."""
        with self._errors(request.state):
            return await handler(self._with_memory(request))

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Runs the tool, notes what it came to, and adds advice to the message of a failed call."""
        with self._errors(request.state):
            watched = self._called(request)
            answer = handler(request)
            return answer if watched is None else _advised(answer, watched.answered(*_noted(request, answer)))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        """Runs the tool, notes what it came to, and adds advice to the message of a failed call."""
        with self._errors(request.state):
            watched = self._called(request)
            answer = await handler(request)
            return answer if watched is None else _advised(answer, await watched.advised(*_noted(request, answer)))

    def after_agent(self, state: CasebankState, runtime: Runtime[None]) -> None:  # noqa: ARG002
        """Retains the run."""
        if (watched := self._open.pop(_key(state), None)) is not None:
            watched.ended(state["messages"][-1])

    def close(self) -> None:
        """Retains as aborted what never came to its end."""
        while self._open:
            self._give_up_on_the_oldest()

    def _new(self, state: CasebankState) -> tuple[str, Watched]:
        said = [message.text for message in state["messages"] if message.type == "human"]
        key, run = str(uuid4()), self._memory.run(self._agent, said[-1] if said else "", **self._more)
        self._open[key] = Watched(run, self._judge)
        if len(self._open) > MOST_OPEN:
            self._give_up_on_the_oldest()
        return key, self._open[key]

    def _give_up_on_the_oldest(self) -> None:
        _, watched = self._open.popitem(last=False)
        watched.broke_off(asyncio.CancelledError("nobody told how it ended"))

    def _with_memory(self, request: ModelRequest[None]) -> ModelRequest[None]:
        watched = self._open.get(_key(request.state))
        if watched is None or not watched.run.context:
            return request
        said = request.system_message or SystemMessage("")
        content = with_advice(said.content, watched.run.context) if said.content else watched.run.context
        return request.override(system_message=said.model_copy(update={"content": content}))

    def _called(self, request: ToolCallRequest) -> Watched | None:
        watched = self._open.get(_key(request.state))
        if watched is not None:
            watched.called(request.tool_call["id"] or "", request.tool_call["name"], request.tool_call["args"])
        return watched

    @contextmanager
    def _errors(self, state: Any) -> Iterator[None]:
        try:
            yield
        except GraphBubbleUp:
            raise  # an interrupt: the run goes on later
        except BaseException as error:
            if (watched := self._open.pop(_key(state), None)) is not None:
                watched.broke_off(error)
            raise


def _key(state: Any) -> str:
    return str(state.get("casebank_run", ""))


def _noted(request: ToolCallRequest, answer: ToolMessage | Command[Any]) -> tuple[str, Any, Status | None]:
    """Returns the arguments of ``Watched.answered``: a message that is no error may still tell of one."""
    said, status = (answer.content, answer.status) if isinstance(answer, ToolMessage) else (answer, "success")
    return request.tool_call["id"] or "", said, "error" if status == "error" else None


def _advised(answer: ToolMessage | Command[Any], advice: str | None) -> ToolMessage | Command[Any]:
    if not isinstance(answer, ToolMessage) or advice is None:
        return answer
    return answer.model_copy(update={"content": with_advice(answer.content, advice)})
