"""A memory that a flow made of a run by itself, as a row of its table ``context_eng_memories``."""

import json
from typing import Annotated

from pydantic import BeforeValidator, Field

from retrieval.tables.kinds import RunOutcome
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
