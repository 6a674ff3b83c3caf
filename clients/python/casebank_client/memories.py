"""The methods for what is kept: facts, knowledge and cases, and recall over them; for both clients.

``add``, ``search``, ``get_all`` and ``delete`` are the four of other memories: they keep, find, list and delete facts.
"""

from collections.abc import Iterable
from typing import Any, Never, cast

from casebank_client import bodies
from casebank_client.answers import (
    Cases,
    Fact,
    FactKind,
    Facts,
    Knowledge,
    KnowledgePage,
    MemoryFound,
    MemoryKind,
    Recalled,
    WholeCase,
)
from casebank_client.wire import Request

ASSISTANT = "assistant"
"""Agent of the memory where none is named; the service's own default for the Model Context Protocol."""


class Memories:
    """Methods of the synchronous client; all raise as the client's other calls do."""

    def ask(self, request: Request, *, within_s: float | None = None) -> Any:
        """Sends a request that has no method of its own, and returns the JSON of its answer."""
        raise NotImplementedError

    def add(self, text: str, *, agent: str = ASSISTANT, kind: FactKind = "fact", **more: Any) -> Fact:
        """Keeps a text of at most 2,000 characters as a fact about the user, in these words, and returns it.

        No model rewrites it; secrets are taken out. A fact that was told before is counted, and not kept twice.
        Messages of a conversation belong into ``add_turns``, from which casebank reads facts itself.

        Args:
            text: the fact, in words.
            agent: agent that the fact is for.
            kind: kind of the fact.
            more: further fields of ``POST /v1/facts``, such as ``value`` or ``category``.
        """
        return cast("Fact", self.ask(bodies.add_fact(agent, kind, text, more)))

    def search(self, query: str, *, agent: str = ASSISTANT, limit: int = 10, **other: Never) -> list[MemoryFound]:
        """Returns the facts that match the query, the best first; ``source["fact_id"]`` is the id for ``delete``."""
        bodies.refuse(other)
        return self.recall(agent, query, kinds=["fact"], top_k=limit)["memories"]

    def get_all(self, *, agent: str = ASSISTANT, **other: Never) -> list[Fact]:
        """Returns every fact of the agent that holds now, the newest first."""
        bodies.refuse(other)
        page = self.facts(agent=agent, limit=bodies.PAGE)
        every = page["facts"]
        while page["next_cursor"] is not None:
            page = self.facts(agent=agent, limit=bodies.PAGE, cursor=page["next_cursor"])
            every += page["facts"]
        return every

    def delete(self, fact_id: str) -> None:
        """Deletes a fact for good; one that it had replaced holds again."""
        self.ask(bodies.delete("facts", fact_id))

    def recall(self, agent: str, query: str, *, kinds: Iterable[MemoryKind] | None = None, **options: Any) -> Recalled:
        """Returns the turns, facts and knowledge that match the query; ``options`` are those of ``POST /v1/recall``."""
        return cast("Recalled", self.ask(bodies.recall(agent, query, kinds, options)))

    def facts(self, **filters: Any) -> Facts:
        """Returns a page of facts, the newest first; ``filters`` are those of ``GET /v1/facts``, such as ``agent``."""
        return cast("Facts", self.ask(bodies.page("facts", filters)))

    def knowledge(self, **filters: Any) -> KnowledgePage:
        """Returns a page of the user's knowledge, the newest first; ``filters`` are those of ``GET /v1/knowledge``."""
        return cast("KnowledgePage", self.ask(bodies.page("knowledge", filters)))

    def add_knowledge(self, agent: str, category: str, text: str, **more: Any) -> Knowledge:
        """Keeps an entry about a domain and returns it; ``more`` are further fields of ``POST /v1/knowledge``."""
        return cast("Knowledge", self.ask(bodies.add_knowledge(agent, category, text, more)))

    def delete_knowledge(self, knowledge_id: str) -> None:
        """Deletes an entry of knowledge for good."""
        self.ask(bodies.delete("knowledge", knowledge_id))

    def cases(self, **filters: Any) -> Cases:
        """Returns a page of cases, the newest first; ``filters`` are those of ``GET /v1/cases``, such as ``agent``."""
        return cast("Cases", self.ask(bodies.page("cases", filters)))

    def case(self, case_id: str) -> WholeCase:
        """Returns a case with its tool traces, turns and learned procedure."""
        return cast("WholeCase", self.ask(bodies.one("cases", case_id)))

    def delete_case(self, case_id: str) -> None:
        """Deletes a case for good, with the repeats that were merged into it."""
        self.ask(bodies.delete("cases", case_id))


class AsyncMemories:
    """Methods of the client for asyncio, as ``Memories``."""

    async def ask(self, request: Request, *, within_s: float | None = None) -> Any:
        """See ``Memories.ask``."""
        raise NotImplementedError

    async def add(self, text: str, *, agent: str = ASSISTANT, kind: FactKind = "fact", **more: Any) -> Fact:
        """See ``Memories.add``."""
        return cast("Fact", await self.ask(bodies.add_fact(agent, kind, text, more)))

    async def search(self, query: str, *, agent: str = ASSISTANT, limit: int = 10, **other: Never) -> list[MemoryFound]:
        """See ``Memories.search``."""
        bodies.refuse(other)
        return (await self.recall(agent, query, kinds=["fact"], top_k=limit))["memories"]

    async def get_all(self, *, agent: str = ASSISTANT, **other: Never) -> list[Fact]:
        """See ``Memories.get_all``."""
        bodies.refuse(other)
        page = await self.facts(agent=agent, limit=bodies.PAGE)
        every = page["facts"]
        while page["next_cursor"] is not None:
            page = await self.facts(agent=agent, limit=bodies.PAGE, cursor=page["next_cursor"])
            every += page["facts"]
        return every

    async def delete(self, fact_id: str) -> None:
        """See ``Memories.delete``."""
        await self.ask(bodies.delete("facts", fact_id))

    async def recall(
        self, agent: str, query: str, *, kinds: Iterable[MemoryKind] | None = None, **options: Any
    ) -> Recalled:
        """See ``Memories.recall``."""
        return cast("Recalled", await self.ask(bodies.recall(agent, query, kinds, options)))

    async def facts(self, **filters: Any) -> Facts:
        """See ``Memories.facts``."""
        return cast("Facts", await self.ask(bodies.page("facts", filters)))

    async def knowledge(self, **filters: Any) -> KnowledgePage:
        """See ``Memories.knowledge``."""
        return cast("KnowledgePage", await self.ask(bodies.page("knowledge", filters)))

    async def add_knowledge(self, agent: str, category: str, text: str, **more: Any) -> Knowledge:
        """See ``Memories.add_knowledge``."""
        return cast("Knowledge", await self.ask(bodies.add_knowledge(agent, category, text, more)))

    async def delete_knowledge(self, knowledge_id: str) -> None:
        """See ``Memories.delete_knowledge``."""
        await self.ask(bodies.delete("knowledge", knowledge_id))

    async def cases(self, **filters: Any) -> Cases:
        """See ``Memories.cases``."""
        return cast("Cases", await self.ask(bodies.page("cases", filters)))

    async def case(self, case_id: str) -> WholeCase:
        """See ``Memories.case``."""
        return cast("WholeCase", await self.ask(bodies.one("cases", case_id)))

    async def delete_case(self, case_id: str) -> None:
        """See ``Memories.delete_case``."""
        await self.ask(bodies.delete("cases", case_id))
