"""A turn of a session as text: its words, and its calls of tools."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from retrieval.text import ends_of

USER = ("user", "human")
"""Roles of the person who talks with the agent; other roles are the assistant, its tools, or the system."""

RESULT = ("tool", "function")
"""Roles of messages with the result of a tool's call."""


@dataclass(frozen=True, slots=True)
class SessionTurn:
    """One message of a session.

    Attributes:
        number: place in the session, from 1.
        message: role, content and other fields, as in the API of chat completions.
    """

    number: int
    said_at: datetime
    message: Mapping[str, Any]

    @property
    def role(self) -> str:
        """Role of the turn's speaker, as the backend calls it."""
        return str(self.message["role"])

    @property
    def is_the_users(self) -> bool:
        """True if the turn was said by the person who talks with the agent."""
        return self.role.casefold() in USER

    @property
    def is_a_result(self) -> bool:
        """True if the turn is a tool's result of a call."""
        return self.role.casefold() in RESULT

    @property
    def said(self) -> str:
        """Text of the message; of content in parts, the text of each part on its own line."""
        return said_in(self.message.get("content"))

    @property
    def calls(self) -> list[str]:
        """Calls of tools in the turn, each as ``name(arguments)``, with the arguments as the model wrote them."""
        functions = [call["function"] for call in self.message.get("tool_calls") or ()]
        return [f"{function['name']}({function.get('arguments') or ''})" for function in functions]

    @property
    def text(self) -> str:
        """Text and calls of the turn, each call on its own line."""
        return "\n".join(part for part in (self.said, *self.calls) if part)


def said_in(content: object) -> str:
    """Returns the text of a message's content, which is a text or a list of parts, of which some are texts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, Mapping) else part for part in parts]
    return "\n".join(text for text in texts if isinstance(text, str) and text)


def shortened_message(message: Mapping[str, Any], longest: int) -> dict[str, Any]:
    """Returns the message with each text shortened to ``longest`` characters, those in arguments of calls, too."""
    short = {**message, "content": _short(message.get("content"), longest)}
    if calls := message.get("tool_calls"):
        short["tool_calls"] = [
            {**call, "function": {**call["function"], "arguments": _arguments(call["function"], longest)}}
            for call in calls
        ]
    return short


def _arguments(function: Mapping[str, Any], longest: int) -> str:
    """Returns the arguments of a call with their texts shortened; arguments that are JSON of few levels stay JSON."""
    arguments = str(function.get("arguments") or "")
    if len(arguments) <= longest:
        return arguments
    try:
        text = json.dumps(_short(json.loads(arguments), longest), ensure_ascii=False)
    except (ValueError, RecursionError):
        return ends_of(arguments, longest)
    return text.encode(errors="backslashreplace").decode()  # a lone surrogate stays the escape that it was


def _short(content: object, longest: int) -> object:
    if isinstance(content, str):
        return ends_of(content, longest)
    if isinstance(content, list):
        return [_short(each, longest) for each in content]
    if isinstance(content, Mapping):
        return {name: _short(each, longest) for name, each in content.items()}
    return content
