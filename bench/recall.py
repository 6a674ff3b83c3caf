"""Quality and speed of recall, in long conversations whose questions name their evidence."""

import json
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import numpy as np

from app.postgres.pools import ANY_LENGTH, service_database
from app.providers.wordllama import WordLlamaEmbedder
from bench.bank import empty
from bench.measure import Measurement, interleaved, p50
from bench.recall_large import LargeBank, large
from retrieval.database.parameters import vector_text
from retrieval.recall.memory import KINDS, Recalled, RecallQuestion, TurnSource
from retrieval.recall.statement import BY_VECTORS
from retrieval.retrieve import Reader
from writer.author import Author
from writer.privacy.keys import Keyring
from writer.queue.worker import Worker
from writer.sessions.append import append_turns
from writer.sessions.prepare import MOST_AT_ONCE, TurnsTold, prepare_turns

AGENT = "companion"
AIMS = {
    "sessions hit@1": 0.72,
    "sessions hit@5": 0.93,
    "sessions all evidence in 5": 0.85,
    "turns recall@10": 0.67,
}
SPEED = 2.0
LARGE = 10_000
"""Turns of the user whose recalls are timed."""
ROUNDS, WARM_UP = 60, 10
_WORDS = "SELECT lexeme, cardinality(positions) FROM unnest(to_tsvector('english', $1))"
TOP_K = 10


@dataclass(frozen=True, slots=True)
class Query:
    """A question about a conversation, with its evidence: sessions, and places in them."""

    text: str
    evidence: frozenset[tuple[str, int]]

    @property
    def sessions(self) -> set[str]:
        """Returns the sessions of the evidence."""
        return {session for session, _ in self.evidence}

    def measured(self, recalled: Recalled) -> tuple[float, ...]:
        """Returns the measures of AIMS for this question."""
        named = [each.session_id for each in recalled.sessions]
        turns = {(m.source.session_id, m.source.number) for m in recalled.memories if isinstance(m.source, TurnSource)}
        return (
            float(named[:1] != [] and named[0] in self.sessions),
            float(not self.sessions.isdisjoint(named[:5])),
            float(self.sessions <= set(named[:5])),
            len(self.evidence & turns) / len(self.evidence),
        )


@dataclass(frozen=True, slots=True)
class Bank:
    """The parts of a service for recall and for filling the bank."""

    reader: Reader
    worker: Worker
    keyring: Keyring
    bare: asyncpg.Connection
    now: datetime

    async def append(self, user: str, session: str, turns: Sequence[dict[str, Any]]) -> None:
        """Appends turns to a session of the user."""
        for start in range(0, len(turns), MOST_AT_ONCE):
            draft = TurnsTold.model_validate({"agent": AGENT, "turns": turns[start : start + MOST_AT_ONCE]})
            author = Author(user, "bench", self.now)
            await append_turns(self.reader.database, self.keyring, session, prepare_turns(draft), author)

    async def settled(self) -> None:
        """Works until the queue is empty."""
        while await self.worker.run_once():
            pass
        await self.bare.execute("VACUUM ANALYZE")


async def recall(home: Path, data: Path | None) -> list[Measurement]:
    """Measures over real conversations the share of evidence found, and the speed in 10,000 turns.

    Raises:
        FileNotFoundError: ``data`` has no conversations.jsonl.
    """
    if data is None:
        raise FileNotFoundError("recall reads conversations.jsonl from the folder that --data names")
    conversations = [json.loads(line) for line in (data / "conversations.jsonl").read_text().splitlines()]
    url = await empty(home, "bench_recall")
    keyring = Keyring(os.urandom(32), seals_words=True)
    bare = await asyncpg.connect(url.replace("+asyncpg", ""), server_settings={"jit": "off"}, **ANY_LENGTH)
    try:
        async with service_database(url) as database:
            embedder = WordLlamaEmbedder()
            reader = Reader(database, embedder, seals=keyring)
            bank = Bank(reader, Worker(database, embedder, keyring), keyring, bare, datetime.now(UTC))
            quality = await _quality(bank, conversations)
            speed = await _speed(bank, conversations)
            return [*quality, speed, *await _large(bank, conversations)]
    finally:
        await bare.close()


async def _quality(bank: Bank, conversations: Sequence[dict[str, Any]]) -> list[Measurement]:
    for conversation in conversations:
        for session in conversation["sessions"]:
            await bank.append(conversation["conversation"], f"session {session['session']}", turns_of(session))
    await bank.settled()
    by_conversation: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for conversation in conversations:
        user = conversation["conversation"]
        for query in questions_of(conversation):
            question = RecallQuestion(AGENT, query.text, TOP_K, kinds=("turn",), token_budget=100_000)
            by_conversation[user].append(query.measured(await bank.reader.recall(user, bank.now, question)))
    measured = [each for some in by_conversation.values() for each in some]
    rival = await _by_words(bank.bare, conversations)
    of_rival = Measurement("recall, sessions hit@1, BM25 alone", rival, "", "a session is one text; English stems")
    return [
        of_rival,
        *(
            Measurement(
                f"recall, {name}",
                float(np.mean([each[place] for each in measured])),
                "",
                f"{len(measured)} questions; by conversation "
                + ", ".join(f"{np.mean([each[place] for each in some]):.3f}" for some in by_conversation.values()),
                aim=aim,
                at_least=True,
            )
            for place, (name, aim) in enumerate(AIMS.items())
        ),
    ]


async def _by_words(bare: asyncpg.Connection, conversations: Sequence[dict[str, Any]]) -> float:
    """Returns the share of questions whose first session by BM25 (k1 1.2, b .75) has evidence."""

    async def words(text: str) -> dict[str, int]:
        return dict(await bare.fetch(_WORDS, text))

    hits = []
    for conversation in conversations:
        names = [f"session {session['session']}" for session in conversation["sessions"]]
        texts = ["\n".join(turn["content"] for turn in turns_of(session)) for session in conversation["sessions"]]
        sessions = [await words(text) for text in texts]
        length = np.array([sum(each.values()) for each in sessions])
        for query in questions_of(conversation):
            relevance = np.zeros(len(sessions))
            for word in await words(query.text):
                count = np.array([each.get(word, 0) for each in sessions])
                having = (count > 0).sum()
                rarity = np.log(1 + (len(sessions) - having + 0.5) / (having + 0.5))
                relevance += rarity * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length / length.mean()))
            hits.append(names[int(relevance.argmax())] in query.sessions)
    return float(np.mean(hits))


async def _speed(bank: Bank, conversations: Sequence[dict[str, Any]]) -> Measurement:
    sessions = [session for conversation in conversations for session in conversation["sessions"]]
    count = 0
    while count < LARGE:
        turns = turns_of(sessions[count % len(sessions)])[: LARGE - count]
        await bank.append("large", f"session at {count}", turns)
        count += len(turns)
    await bank.settled()
    texts = [query.text for conversation in conversations for query in questions_of(conversation)]
    queries = [texts[number * 7 % len(texts)] for number in range(ROUNDS)]
    vectors = await bank.reader.embedder.embed(queries)

    async def whole(number: int) -> None:
        await bank.reader.recall("large", bank.now, RecallQuestion(AGENT, queries[number], TOP_K))

    async def bare_statement(number: int) -> None:
        parameters = {
            "user_sub": "large",
            "authorised_at": bank.now,
            "agent_key": AGENT,
            "query": queries[number],
            "kinds": list(KINDS),
            "session": None,
            "as_of": None,
            "least": 2.0,
            "top_k": TOP_K,
            "vector": vector_text(vectors[number]),
            "model": bank.reader.embedder.model,
        }
        await bank.bare.fetch(BY_VECTORS.sql, *BY_VECTORS.arguments(parameters))

    await interleaved(WARM_UP, whole, bare_statement)
    ours, bare = await interleaved(ROUNDS, whole, bare_statement)
    detail = f"p50 {p50(ours):.1f} ms against {p50(bare):.1f} ms, {LARGE:,} turns of one profile"
    return Measurement("recall in-process / bare statement", p50(ours) / p50(bare), "x", detail, aim=SPEED)


async def _large(bank: Bank, conversations: Sequence[dict[str, Any]]) -> list[Measurement]:
    """Measures the first conversation within ever more turns, made of the others'."""
    first, *rest = conversations
    others = [turn["content"] for each in rest for session in each["sessions"] for turn in turns_of(session)]
    queries = [(each.text, each.evidence) for each in questions_of(first)]
    return await large(LargeBank(bank.bare, bank.reader.embedder, first["conversation"], AGENT), others, queries)


def turns_of(session: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns a session's turns as a backend would send them, with captions of pictures."""
    began = datetime.strptime(session["date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    return [
        {
            "role": "user",
            "name": turn["speaker"],
            "content": "\n".join(part for part in (turn["text"], turn.get("caption")) if part),
            "time": (began + timedelta(seconds=number)).isoformat(),
        }
        for number, turn in enumerate(session["turns"])
    ]


def questions_of(conversation: dict[str, Any]) -> list[Query]:
    """Returns the questions whose evidence is in the conversation."""
    places = {
        turn["turn_id"]: (f"session {session['session']}", number)
        for session in conversation["sessions"]
        for number, turn in enumerate(session["turns"], start=1)
    }
    queries = []
    for each in conversation["questions"]:
        evidence = frozenset(places[turn_id] for turn_id in each["evidence"] if turn_id in places)
        if evidence:
            queries.append(Query(each["question"], evidence))
    return queries
