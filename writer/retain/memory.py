"""Memories that a flow made of runs by itself: rows of its table ``context_eng_memories`` in a hosted Postgres.

n8n flows written for a hosted Postgres send them unchanged.
"""

import json
from dataclasses import dataclass
from typing import Annotated

from pydantic import BeforeValidator, Discriminator, Field, RootModel, Tag

from retrieval.tables.kinds import RunOutcome
from writer.retain.prepare import PreparedRun, prepare
from writer.run import AgentKey, FinishedRun, LearnedProcedure, Strict, TaskText
from writer.storable import Payload


def _parsed(metadata: object) -> object:
    """Returns metadata that a flow sends as JSON in a text as an object; anything else unchanged."""
    try:
        return json.loads(metadata) if isinstance(metadata, str) else metadata
    except (ValueError, RecursionError):
        return metadata


class MemoryIn(Strict):
    """A memory that a flow made of a run by itself: a row of its table ``context_eng_memories``."""

    agent: AgentKey = Field(default="context-eng", description="agent that gets the memory")
    content: TaskText = Field(description="searchable text")
    metadata: Annotated[LearnedProcedure, BeforeValidator(_parsed)]
    embedding: Payload = Field(default=None, description="not read: casebank embeds the text by itself")


def run_of(memory: MemoryIn) -> FinishedRun:
    """Returns a flow's memory as a finished run: a success if it has a learned procedure, else of unknown outcome."""
    outcome: RunOutcome = "unknown" if memory.metadata.data is None else "success"
    return FinishedRun(agent=memory.agent, task=memory.content, outcome=outcome, procedure=memory.metadata)


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
