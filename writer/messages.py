"""Reads the tool calls out of a conversation in the format of OpenAI's chat completions API.

Source: https://platform.openai.com/docs/api-reference/chat (messages of the roles assistant and tool).
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from pydantic import JsonValue


class Function(Protocol):
    """The function of a tool call."""

    @property
    def name(self) -> str:
        """The tool's name."""

    @property
    def arguments(self) -> str:
        """The arguments as JSON text; a model may write invalid JSON."""


class FunctionCall(Protocol):
    """A tool call in an assistant's message."""

    @property
    def id(self) -> str:
        """Returns the id that the tool's answer refers to."""

    @property
    def function(self) -> Function:
        """Returns the function that the model calls."""


class Message(Protocol):
    """A message of the conversation."""

    @property
    def content(self) -> JsonValue:
        """The message's text, or a list of parts."""

    @property
    def tool_calls(self) -> Sequence[FunctionCall] | None:
        """Returns the calls of an assistant's message; None for other messages."""

    @property
    def tool_call_id(self) -> str | None:
        """The id of the call that a tool's message answers; None for other messages."""

    @property
    def is_error(self) -> bool | None:
        """True if a tool's message is an error."""


def tool_traces(messages: Iterable[Message]) -> list[dict[str, JsonValue]]:
    """Returns the conversation's tool calls in their order, each with its arguments and the tool's answer.

    Arguments are JSON text, which ``ToolTrace`` parses; the output of a call without an answer is None.
    """
    answers: dict[str, deque[dict[str, JsonValue]]] = defaultdict(deque)
    traces: list[tuple[str, dict[str, JsonValue]]] = []
    for message in messages:
        if message.tool_call_id is not None:
            status = {"status": "error"} if message.is_error else {}
            answers[message.tool_call_id].append({"output": _text(message.content), **status})
        traces += [
            (call.id, {"tool": call.function.name, "input": call.function.arguments})
            for call in message.tool_calls or ()
        ]
    return [{**trace, **(answers[key].popleft() if answers[key] else {"output": None})} for key, trace in traces]


def _text(content: JsonValue) -> JsonValue:
    """Returns the texts of a message's parts, joined; content that is no list, or has other parts, stays as it is."""
    if not isinstance(content, list):
        return content
    texts = [part.get("text") if isinstance(part, Mapping) else None for part in content]
    return "".join(str(text) for text in texts) if texts and all(isinstance(text, str) for text in texts) else content
