"""The tool calls in a conversation, as chat backends keep it: the messages of OpenAI's chat completions API.

Source: https://platform.openai.com/docs/api-reference/chat (messages of the roles assistant and tool).
"""

import json
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from pydantic import JsonValue


class Function(Protocol):
    """The function that is called."""

    @property
    def name(self) -> str:
        """The tool's name."""

    @property
    def arguments(self) -> str:
        """JSON, if the model wrote it well."""


class FunctionCall(Protocol):
    """A call that the model asked for."""

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
        """A text, or parts."""

    @property
    def tool_calls(self) -> Sequence[FunctionCall] | None:
        """Returns the calls of an assistant's message; None for other messages."""

    @property
    def tool_call_id(self) -> str | None:
        """The call that a tool's message answers."""


def tool_traces(messages: Iterable[Message]) -> list[dict[str, JsonValue]]:
    """Returns the calls in their order, each with its arguments and the answer that came to its id.

    Arguments that are no JSON stay the text that they are; a call that nobody answered has no output.
    """
    answers: dict[str, deque[JsonValue]] = defaultdict(deque)
    traces: list[tuple[str, dict[str, JsonValue]]] = []
    for message in messages:
        if message.tool_call_id is not None:
            answers[message.tool_call_id].append(_text(message.content))
        traces += [
            (call.id, {"tool": call.function.name, "input": _arguments(call.function.arguments)})
            for call in message.tool_calls or ()
        ]
    return [{**trace, "output": answers[key].popleft() if answers[key] else None} for key, trace in traces]


def _arguments(text: str) -> JsonValue:
    try:
        arguments: JsonValue = json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError):
        return text
    return arguments


def _refused(constant: str) -> JsonValue:
    raise ValueError(f"{constant} is no JSON")


def _text(content: JsonValue) -> JsonValue:
    """Returns the text of a message's parts, or the content as it is where it has other parts than text."""
    if not isinstance(content, list):
        return content
    texts = [part.get("text") if isinstance(part, Mapping) else None for part in content]
    return "".join(str(text) for text in texts) if texts and all(isinstance(text, str) for text in texts) else content
