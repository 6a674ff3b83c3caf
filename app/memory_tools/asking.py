"""The user and agent that a tool call is for."""

from dataclasses import dataclass

from app.runtime import Runtime
from writer.author import Author


@dataclass(frozen=True, slots=True)
class Asking:
    """The user and agent of a tool call. They come from the token and the caller's URL, never from the model."""

    parts: Runtime
    author: Author
    agent: str
