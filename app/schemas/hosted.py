"""Bodies of the two paths that stand in for a hosted Postgres: n8n flows written for it call them unchanged."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Discriminator, Field, RootModel, Tag

from writer.retain.memory import MemoryIn, run_of
from writer.retain.prepare import PreparedRun, prepare

_One = Annotated[MemoryIn, Tag("memory")]
_Several = Annotated[list[MemoryIn], Field(min_length=1, max_length=100), Tag("memories")]


class MemoriesIn(
    RootModel[
        Annotated[_One | _Several, Discriminator(lambda body: "memories" if isinstance(body, list) else "memory")]
    ]
):
    """One memory, or the list of them that n8n's node for a hosted Postgres sends."""


@dataclass(frozen=True, slots=True)
class PreparedMemories:
    """Memories that are ready to be stored, and whether they came as a list."""

    runs: list[PreparedRun]
    is_list: bool


def prepared(memories: MemoriesIn) -> PreparedMemories:
    """Returns the memories as runs that are ready to be stored; with a learned procedure, the run succeeded.

    Raises:
        SecretInName: the name of an agent looks like a secret.
    """
    is_list = isinstance(memories.root, list)
    rows = memories.root if isinstance(memories.root, list) else [memories.root]
    return PreparedMemories([prepare(run_of(each)) for each in rows], is_list)
