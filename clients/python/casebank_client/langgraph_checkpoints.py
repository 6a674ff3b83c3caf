"""A checkpointer for LangGraph: a graph's states and pending writes by thread, kept by casebank as they are."""

import asyncio
import json
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any
from urllib.parse import urlencode

from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    RunnableConfig,
    get_checkpoint_metadata,
    writes_sort_key,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from casebank_client.client import Casebank
from casebank_client.wire import Request

PAGE = 10
MOST_WRITES = 500
"""Writes in one request."""


class CasebankSaver(BaseCheckpointSaver[int]):
    """A LangGraph checkpointer in casebank: one agent's threads, and the user's alone; erased with the user.

    States are serialised by LangGraph's own serializer and encrypted with the user's key. They are **not redacted**,
    for a graph resumes from the very state that it left, and casebank neither reads nor searches them.

    * The state of a checkpoint and the writes of one task have as many bytes as a body may have
      (``CASEBANK_MAX_BODY_BYTES``, 4 MiB), a third less for Base64; a checkpoint with all its writes has
      16 MiB and 10,000 writes at most. Otherwise ``CasebankRefused`` is raised, as where the user switched memory off
      for the agent (``is_memory_off``).
    * Writers of one thread do not wait for each other: each keeps its checkpoints, and the one with the latest id is
      the thread's state.
    * The asyncio methods run the others in a thread.

    Every call raises ``CasebankUnreachable`` where casebank does not answer within the client's patience.

    Args:
        memory: the client; it is not closed.
        agent: agent of the threads.
        serde: LangGraph's serializer; None: its default.
    """

    def __init__(self, memory: Casebank, agent: str, *, serde: SerializerProtocol | None = None) -> None:
        super().__init__(serde=serde)
        self._memory = memory
        self._agent = agent

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Returns the checkpoint that the config names, or the latest of its thread and namespace; None: none."""
        named = config["configurable"]
        return next(self.list({"configurable": {"checkpoint_ns": "", **named}}, limit=1), None)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's own name for it
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yields the checkpoints, the latest first, a page at a time.

        Args:
            config: only those of its thread, namespace and checkpoint; None: of all threads of the agent.
            filter: only those whose metadata have these values.
            before: only those before this checkpoint.
            limit: maximum number of checkpoints; None: all.
        """
        named, earlier = (config or {}).get("configurable", {}), (before or {}).get("configurable", {})
        query = {"agent": self._agent, "limit": min(limit or PAGE, PAGE), "thread_id": named.get("thread_id")}
        query |= {"namespace": named.get("checkpoint_ns"), "checkpoint_id": named.get("checkpoint_id")}
        query["before"] = earlier.get("checkpoint_id")
        left = limit
        while left is None or left > 0:
            given = urlencode({name: value for name, value in query.items() if value is not None})
            page = self._memory.ask(Request("GET", f"/v1/checkpoints?{given}", None))
            for kept in page["checkpoints"]:
                found = self._opened(kept)
                if all(found.metadata.get(name) == value for name, value in (filter or {}).items()):
                    yield found
                    left = None if left is None else left - 1
                if left == 0:
                    return
            query["cursor"] = page["next_cursor"]
            if query["cursor"] is None:
                return

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,  # noqa: ARG002 - a checkpoint is stored whole
    ) -> RunnableConfig:
        """Stores a checkpoint, whole, and returns the config that names it."""
        named = config["configurable"]
        state = {
            "checkpoint": self._packed(checkpoint),
            "metadata": self._packed(get_checkpoint_metadata(config, metadata)),
            "parent": named.get("checkpoint_id"),
        }
        name = _name(named["thread_id"], named.get("checkpoint_ns", ""), checkpoint["id"])
        self._store(name, [{"value": json.dumps(state)}])
        return name

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Stores the writes of a task that are pending on a checkpoint; one that is there already stays."""
        named = config["configurable"]
        places = [WRITES_IDX_MAP.get(channel, place) for place, (channel, _) in enumerate(writes)]
        parts = [
            {
                "task_id": task_id,
                "place": place,
                "value": json.dumps({"channel": channel, "path": task_path, "value": self._packed(value)}),
                "first_wins": place >= 0,  # an error or an interrupt of a later attempt replaces the one before
            }
            for place, (channel, value) in zip(places, writes, strict=True)
        ]
        name = _name(named["thread_id"], named.get("checkpoint_ns", ""), named["checkpoint_id"])
        for first in range(0, len(parts), MOST_WRITES):
            self._store(name, parts[first : first + MOST_WRITES])

    def delete_thread(self, thread_id: str) -> None:
        """Deletes all checkpoints of a thread for good."""
        query = urlencode({"agent": self._agent, "thread_id": thread_id})
        self._memory.ask(Request("DELETE", f"/v1/checkpoints?{query}", None))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """See ``get_tuple``."""
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's own name for it
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """See ``list``."""
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (each := await asyncio.to_thread(next, found, None)) is not None:
            yield each

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """See ``put``."""
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """See ``put_writes``."""
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """See ``delete_thread``."""
        await asyncio.to_thread(self.delete_thread, thread_id)

    def _store(self, name: RunnableConfig, parts: Sequence[dict[str, Any]]) -> None:
        named = name["configurable"]
        body = {"agent": self._agent, "thread_id": named["thread_id"], "namespace": named["checkpoint_ns"]}
        body |= {"checkpoint_id": named["checkpoint_id"], "parts": parts}
        self._memory.ask(Request("PUT", "/v1/checkpoints", body))

    def _opened(self, kept: dict[str, Any]) -> CheckpointTuple:
        state, *writes = ({**part, **json.loads(part["value"])} for part in kept["parts"])
        writes.sort(key=lambda write: writes_sort_key(write["path"], write["task_id"], write["place"]))
        names = kept["thread_id"], kept["namespace"]
        return CheckpointTuple(
            config=_name(*names, kept["checkpoint_id"]),
            checkpoint=self._unpacked(state["checkpoint"]),
            metadata=self._unpacked(state["metadata"]),
            parent_config=_name(*names, state["parent"]) if state["parent"] else None,
            pending_writes=[(write["task_id"], write["channel"], self._unpacked(write["value"])) for write in writes],
        )

    def _packed(self, value: Any) -> tuple[str, str]:
        kind, data = self.serde.dumps_typed(value)
        return kind, b64encode(data).decode()

    def _unpacked(self, packed: Sequence[str]) -> Any:
        kind, data = packed
        return self.serde.loads_typed((kind, b64decode(data)))


def _name(thread_id: object, namespace: str, checkpoint_id: str) -> RunnableConfig:
    named = {"thread_id": str(thread_id), "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}
    return {"configurable": named}
