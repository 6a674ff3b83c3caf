"""Bodies of the two paths that stand in for a hosted Postgres: n8n flows written for it call them unchanged."""

import json
from dataclasses import dataclass
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, JsonValue, RootModel, Tag

from retrieval.tables.kinds import RunOutcome
from writer.retain.prepare import PreparedRun, prepare
from writer.run import AgentKey, FinishedRun, LearnedProcedure, Payload, Strict, TaskText


def _parsed(metadata: object) -> object:
    """Returns metadata that a flow sends as JSON in a text as an object; anything else unchanged."""
    try:
        return json.loads(metadata) if isinstance(metadata, str) else metadata
    except ValueError:
        return metadata


_EXAMPLE: JsonValue = {"content": "Add an age column", "metadata": {"status": "no_failure_detected"}}


class MemoryIn(Strict):
    """A memory that a flow made of a run by itself: a row of its table ``context_eng_memories``."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [_EXAMPLE]})

    agent: AgentKey = Field(default="context-eng", description="agent that gets the memory")
    content: TaskText = Field(description="searchable text")
    metadata: Annotated[LearnedProcedure, BeforeValidator(_parsed)]
    embedding: Payload = Field(default=None, description="not read: casebank embeds the text by itself")


_One = Annotated[MemoryIn, Tag("memory")]
_Several = Annotated[list[MemoryIn], Field(min_length=1, max_length=100), Tag("memories")]


class MemoriesIn(
    RootModel[
        Annotated[_One | _Several, Discriminator(lambda body: "memories" if isinstance(body, list) else "memory")]
    ]
):
    """One memory, or the list of them that n8n's node for a hosted Postgres sends."""

    model_config = ConfigDict(json_schema_extra={"examples": [_EXAMPLE, [_EXAMPLE]]})


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
    prepared = []
    for each in rows:
        outcome: RunOutcome = "unknown" if each.metadata.data is None else "success"
        run = FinishedRun(agent=each.agent, task=each.content, outcome=outcome, procedure=each.metadata)
        prepared.append(prepare(run))
    return PreparedMemories(prepared, is_list)
