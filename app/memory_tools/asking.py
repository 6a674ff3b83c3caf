"""Who asks by a tool, and of what."""

from dataclasses import dataclass

from app.runtime import Runtime
from writer.author import Author


@dataclass(frozen=True, slots=True)
class Asking:
    """Whose memory a tool is about, as the token says, and of which agent, as the caller's URL says: never a model.

    Attributes:
        agent: of the profile.
    """

    parts: Runtime
    author: Author
    agent: str
