"""Bodies of the paths that flows of a hosted Postgres know."""

from pydantic import ConfigDict, Field

from retrieval.tables.kinds import RunOutcome
from writer.retain.prepare import PreparedRun, prepare
from writer.run import AgentKey, FinishedRun, LearnedProcedure, Payload, Strict, TaskText


class MemoryIn(Strict):
    """A memory that a flow made of a run by itself: a row of its table ``context_eng_memories``."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"content": "Add an age column", "metadata": {"status": "no_failure_detected"}}]
        },
    )

    agent: AgentKey = Field(default="context-eng", description="agent that gets the memory")
    content: TaskText = Field(description="searchable text")
    metadata: LearnedProcedure
    embedding: Payload = Field(default=None, description="not read: casebank embeds the text by itself")


def prepared(memory: MemoryIn) -> PreparedRun:
    """Returns the memory as a run that is ready to be stored; with a learned procedure, the run succeeded.

    Raises:
        SecretInName: the name of the agent looks like a secret.
    """
    outcome: RunOutcome = "unknown" if memory.metadata.data is None else "success"
    return prepare(FinishedRun(agent=memory.agent, task=memory.content, outcome=outcome, procedure=memory.metadata))
