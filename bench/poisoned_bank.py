"""A poisoned bank: runs that the service itself retained, made cases of, rewarded and replayed."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from app.providers.wordllama import WordLlamaEmbedder
from retrieval.database.database import Database
from retrieval.ranking.retrieved import Question, Retrieved
from retrieval.retrieve import Reader
from retrieval.search.candidates import CaseSearch
from writer.author import Author
from writer.privacy.keys import Keyring
from writer.profiles import Profile
from writer.queue.worker import Worker
from writer.replays.profile_replay import replay_if_due
from writer.retain.retain import retain
from writer.rewards.feedback import Feedback, give_feedback
from writer.run import FinishedRun

AGENT = "bench"
PLACES = 4
PART = 40
"""Runs that are retained before those of them that are proven are rewarded."""


@dataclass(frozen=True, slots=True)
class Case:
    """A run, as far as it matters here.

    Attributes:
        plan: steps of the run in words.
        reward: reward that came with the run, so a claim of its own; None: it claims none.
        source: name of its writer.
        proven: true if a judge rewards the run later.
        traces: tool calls of the run, as a backend sends them.
    """

    task: str
    plan: tuple[str, ...]
    outcome: str = "success"
    reward: float | None = None
    source: str = "service"
    tags: tuple[str, ...] = ()
    proven: bool = False
    traces: tuple[dict[str, object], ...] = ()


@dataclass(frozen=True, slots=True)
class PoisonedBank:
    """A service's bank with plants in it; each user has one profile."""

    database: Database
    keyring: Keyring = field(default_factory=lambda: Keyring(os.urandom(32)))
    embedder: WordLlamaEmbedder = field(default_factory=WordLlamaEmbedder)

    async def put(self, user: str, bank: Sequence[Case]) -> list[UUID]:
        """Retains the runs in their order, rewards the proven ones, replays the bank, and returns the cases' ids."""
        ids: list[UUID] = []
        worker = Worker(self.database, self.embedder, self.keyring)
        for start in range(0, len(bank), PART):
            part = bank[start : start + PART]
            ids += [await self._retained(user, case) for case in part]
            while await worker.run_once():
                pass
            async with self.database.as_user(user, datetime.now(UTC)) as connection:
                for case_id, case in zip(ids[start:], part, strict=True):
                    if case.proven:
                        await give_feedback(connection, user, "judge", Feedback(1.0, "judge", case_id=case_id))
        await replay_if_due(self.database, Profile(user, AGENT, datetime.now(UTC)), at_night=True)
        return ids

    async def ask(self, user: str, query: str, *, explore: bool = False) -> Retrieved:
        """Returns the service's answer to the query."""
        reader = Reader(self.database, self.embedder, explore=explore, seals=self.keyring)
        return await reader.retrieve(user, datetime.now(UTC), Question(CaseSearch(AGENT, query), PLACES))

    async def _retained(self, user: str, case: Case) -> UUID:
        run = FinishedRun.model_validate(
            {
                "agent": AGENT,
                "task": case.task,
                "plan": case.plan,
                "tool_traces": case.traces,
                "outcome": case.outcome,
                "reward": case.reward,
                "tags": case.tags,
            }
        )
        author = Author(user, case.source, datetime.now(UTC), is_service=True)
        return (await retain(self.database, self.keyring, run, author)).case_id
