"""Memory for the OpenAI Agents SDK: hooks that retrieve and retain, and a session that casebank keeps."""

import asyncio
import json
import logging
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self, cast

from agents import Agent, RunConfig, RunHooks, Tool, default_tool_error_function
from agents.items import TResponseInputItem
from agents.memory import SessionABC, SessionSettings
from agents.run import CallModelData, ModelInputData
from agents.run_context import AgentHookContext, RunContextWrapper
from agents.tool_context import ToolContext

from casebank_client import bodies
from casebank_client.client import Casebank
from casebank_client.errors import CasebankRefused, ClientError
from casebank_client.watched import Judge, Watched, finished, with_advice, with_context
from casebank_client.wire import Request

log = logging.getLogger("casebank")

WHOLE_SESSION = 100_000
"""Tokens of a session that are asked for: the most that the service gives."""
NOT_FOUND = 404


class CasebankHooks(RunHooks[Any]):
    """One run's memory: retrieves when entered, notes tool calls, and retains on the way out.

    async with CasebankHooks(memory, "db-operator", task) as hooks:
        result = await Runner.run(agent, task, hooks=hooks, run_config=hooks.run_config)

    ``with`` does for ``Runner.run_sync``. An exception is a failure and goes on.

    Args:
        memory: the synchronous client, whose calls are made in a thread.
        agent: agent of the run in casebank.
        task: task in words.
        judge: says by the final output how the run ended; without it an end without an error is a success.
        more: further fields of the retain, such as ``tags`` or ``session_id``; ``advice_s=0`` asks for no advice.
    """

    def __init__(self, memory: Casebank, agent: str, task: str, *, judge: Judge = finished, **more: Any) -> None:
        self._watched = Watched(memory.run(agent, task, **more), judge)
        self._output: tuple[Any] | None = None
        self._advice: dict[str, str] = {}
        self.run = self._watched.run
        self.run_config = RunConfig(call_model_input_filter=self.with_memory)

    def with_memory(self, data: CallModelData[Any]) -> ModelInputData:
        """Puts what memory says behind the instructions, and advice behind what failed calls came to.

        It is the ``call_model_input_filter`` of a run.
        """
        said = data.model_data
        items = [self._advised(cast("Mapping[str, Any]", item)) for item in said.input]
        return ModelInputData(input=items, instructions=with_context(said.instructions, self.run.context))

    async def on_tool_start(self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Tool) -> None:
        """Notes the call; of tools that run elsewhere the SDK tells no arguments."""
        if isinstance(context, ToolContext):
            self._watched.called(context.tool_call_id, tool.name, _arguments(context.tool_arguments))
        else:
            self._watched.called(f"{agent.name} {tool.name}", tool.name, None)

    async def on_tool_end(self, context: RunContextWrapper[Any], agent: Agent[Any], tool: Tool, result: object) -> None:
        """Notes what the call came to, and keeps the advice for the model's next call."""
        call_id = context.tool_call_id if isinstance(context, ToolContext) else f"{agent.name} {tool.name}"
        message = default_tool_error_function(cast("RunContextWrapper[Any]", context), Exception())
        failed = str(result).startswith(message)  # which older versions end with the error's own words
        if (advice := await self._watched.advised(call_id, result, "error" if failed else None)) is not None:
            self._advice[call_id] = advice

    async def on_agent_end(self, context: AgentHookContext[Any], agent: Agent[Any], output: Any) -> None:  # noqa: ARG002
        """Notes that the run came to its end."""
        self._output = (output,)

    def _advised(self, item: Mapping[str, Any]) -> TResponseInputItem:
        advice = self._advice.get(item.get("call_id", "")) if item.get("type") == "function_call_output" else None
        output = {} if advice is None else {"output": with_advice(item["output"], advice, "input_text")}
        return cast("TResponseInputItem", {**item, **output})

    def __enter__(self) -> Self:
        self.run.begin()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._watched.broke_off(error)
        elif self._output is not None:
            self._watched.ended(*self._output)
        else:
            self.run.finish()  # nobody knows: no agent came to its end in the block

    async def __aenter__(self) -> Self:
        await self._watched.begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)


class CasebankSession(SessionABC):
    """A conversation that casebank keeps, over ``/v1/sessions``.

    Kept are messages, function calls and their outputs; other items (reasoning, calls of hosted tools) are not, and
    secrets are taken out. Of more than 100,000 tokens the newest turns come back. casebank only adds:
    what ``pop_item`` takes off is left out by this object, and stays in the session. Where casebank does not
    answer for ``begin_s`` of the client's patience, the conversation begins anew, or what was said is not kept, and the
    log says so.
    """

    def __init__(self, memory: Casebank, agent: str, session_id: str, settings: SessionSettings | None = None) -> None:
        self.session_id = session_id
        self.session_settings = settings
        self._memory = memory
        self._agent = agent
        self._popped: set[tuple[int, int]] = set()

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Returns the items, oldest first; with a limit the newest of them."""
        items = [item for _, item in await self._items()]
        most = limit if limit is not None else (self.session_settings and self.session_settings.limit)
        return items if most is None else items[len(items) - min(most, len(items)) :]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Adds items, of which those that casebank has no word for are passed over."""
        turns = [turn for item in items if (turn := _turn_of(cast("Mapping[str, Any]", item))) is not None]
        try:
            for first in range(0, len(turns), 200):
                await self._ask(bodies.add_turns(self._agent, self.session_id, turns[first : first + 200]))
        except ClientError as error:
            log.warning("casebank: what was said is not kept: %s", error)

    async def pop_item(self) -> TResponseInputItem | None:
        """Returns the newest item, and leaves it out from now on."""
        items = await self._items()
        if not items:
            return None
        place, item = items[-1]
        self._popped.add(place)
        return item

    async def clear_session(self) -> None:
        """Deletes the session."""
        try:
            await asyncio.to_thread(self._memory.delete_session, self.session_id)
            self._popped.clear()
        except ClientError as error:
            _unless_unknown(error, "the session is not deleted")

    async def _ask(self, request: Request) -> Any:
        return await asyncio.to_thread(self._memory.ask, request, within_s=self._memory.patience.begin_s)

    async def _items(self) -> list[tuple[tuple[int, int], TResponseInputItem]]:
        """Returns the items, oldest first, each with the number of its turn and its place there."""
        try:
            session = await self._ask(bodies.read_session(self.session_id, WHOLE_SESSION))
        except ClientError as error:
            _unless_unknown(error, "the conversation is not at hand")
            return []
        items = [((turn["number"], n), item) for turn in session["turns"] for n, item in enumerate(_items_of(turn))]
        return [(place, item) for place, item in items if place not in self._popped]


def _unless_unknown(error: ClientError, what: str) -> None:
    if not (isinstance(error, CasebankRefused) and error.status == NOT_FOUND):
        log.warning("casebank: %s: %s", what, error)


def _turn_of(item: Mapping[str, Any]) -> dict[str, Any] | None:
    kind = item.get("type", "message")
    if kind == "message":
        return {"role": item["role"], "content": item["content"]}
    if kind == "function_call":
        call = {"name": item["name"], "arguments": item["arguments"]}
        return {"role": "assistant", "tool_calls": [{"id": item["call_id"], "type": "function", "function": call}]}
    if kind == "function_call_output":
        return {"role": "tool", "tool_call_id": item["call_id"], "content": item["output"]}
    return None


def _items_of(turn: Mapping[str, Any]) -> list[TResponseInputItem]:
    """Returns the items of a turn: its message or output, and then its calls."""
    calls = [(call["id"], call["function"]) for call in turn.get("tool_calls") or ()]
    items: list[dict[str, Any]] = []
    if turn["role"] == "tool":
        items = [{"type": "function_call_output", "call_id": turn["tool_call_id"], "output": turn["content"]}]
    elif turn["content"] or not calls:
        typed = {"type": "message"} if turn["role"] == "assistant" else {}
        items = [{**typed, "role": turn["role"], "content": turn["content"]}]
    items += [
        {"type": "function_call", "call_id": call_id, "name": called["name"], "arguments": called["arguments"]}
        for call_id, called in calls
    ]
    return cast("list[TResponseInputItem]", items)


def _arguments(said: str) -> Any:
    try:
        return json.loads(said) if said else {}
    except ValueError:
        return said
