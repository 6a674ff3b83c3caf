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
    def role(self) -> str:
        """The author of the message, such as "tool"."""

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

    Arguments are JSON text, which ``ToolTrace`` parses; the output of a call without an answer is None. An answer
    without an id, as Ollama has it, is the answer to the oldest call without one.
    """
    answers: dict[str, deque[dict[str, JsonValue]]] = defaultdict(deque)
    waiting: list[str] = []
    traces: list[tuple[str, dict[str, JsonValue]]] = []
    for message in messages:
        called = message.tool_call_id or (waiting[0] if message.role == "tool" and waiting else None)
        if called is not None:
            status = {"status": "error"} if message.is_error else {}
            answers[called].append({"output": _text(message.content), **status})
            if called in waiting:
                waiting.remove(called)
        for call in message.tool_calls or ():
            traces.append((call.id, {"tool": call.function.name, "input": call.function.arguments}))
            waiting.append(call.id)
    return [{**trace, **(answers[key].popleft() if answers[key] else {"output": None})} for key, trace in traces]


def _text(content: JsonValue) -> JsonValue:
    """Returns the texts of a message's parts, joined; content that is no list, or has other parts, stays as it is."""
    if not isinstance(content, list):
        return content
    texts = [part.get("text") if isinstance(part, Mapping) else None for part in content]
    return "".join(str(text) for text in texts) if texts and all(isinstance(text, str) for text in texts) else content
