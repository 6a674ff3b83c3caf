"""A turn as text: its words, and its calls of tools."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

USER = ("user", "human")
"""Roles of the person; the others are the assistant, its tools, or the system."""


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
