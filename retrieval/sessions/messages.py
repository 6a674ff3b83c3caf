"""A turn as text: its words, and its calls of tools."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from retrieval.text import ends_of

USER = ("user", "human")
"""Roles of the person; the others are the assistant, its tools, or the system."""

RESULT = ("tool", "function")
"""Roles of what a call answered."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a session.

    Attributes:
        number: 1-based place in the session.
        message: role, content, and what else chat completions have.
    """

    number: int
    said_at: datetime
    message: Mapping[str, Any]

    @property
    def role(self) -> str:
        """Role of the speaker, in the backend's word."""
        return str(self.message["role"])

    @property
    def is_the_users(self) -> bool:
        """True if the person said it."""
        return self.role.casefold() in USER

    @property
    def is_a_result(self) -> bool:
        """True if a tool said it, in answer to a call."""
        return self.role.casefold() in RESULT

    @property
    def said(self) -> str:
        """Words of the message; content in parts gives their texts, one a line."""
        return said_in(self.message.get("content"))

    @property
    def calls(self) -> list[str]:
        """The calls of tools in it, each as ``name(arguments)``, the arguments as the model wrote them."""
        functions = [call["function"] for call in self.message.get("tool_calls") or ()]
        return [f"{function['name']}({function.get('arguments') or ''})" for function in functions]

    @property
    def text(self) -> str:
        """Words and calls, one a line."""
        return "\n".join(part for part in (self.said, *self.calls) if part)


def said_in(content: object) -> str:
    """Returns the words in a message's content: a text, or the texts among its parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, Mapping) else part for part in parts]
    return "\n".join(text for text in texts if isinstance(text, str) and text)


def shortened_message(message: Mapping[str, Any], longest: int) -> dict[str, Any]:
    """Returns the message with each text, also those within the arguments of calls, in at most that many characters."""
    short = {**message, "content": _short(message.get("content"), longest)}
    if calls := message.get("tool_calls"):
        short["tool_calls"] = [
            {**call, "function": {**call["function"], "arguments": _arguments(call["function"], longest)}}
            for call in calls
        ]
    return short


def _arguments(function: Mapping[str, Any], longest: int) -> str:
    """Returns the arguments of a call; those that are JSON stay so."""
    arguments = str(function.get("arguments") or "")
    if len(arguments) <= longest:
        return arguments
    try:
        return json.dumps(_short(json.loads(arguments), longest), ensure_ascii=False)
    except ValueError:
        return ends_of(arguments, longest)


def _short(content: object, longest: int) -> object:
    if isinstance(content, str):
        return ends_of(content, longest)
    if isinstance(content, list):
        return [_short(each, longest) for each in content]
    if isinstance(content, Mapping):
        return {name: _short(each, longest) for name, each in content.items()}
    return content
