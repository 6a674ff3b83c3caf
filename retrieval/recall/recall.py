"""Finds an agent's memories that a question is about, with one statement, and decrypts them."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from cachetools import LRUCache

from policy.channels import searchable
from retrieval.database.fast_path import FastConnection, Record
from retrieval.errors import SealBroken
from retrieval.pages.memories import text_of
from retrieval.recall.memory import (
    FactSource,
    KnowledgeSource,
    Recalled,
    RecalledMemory,
    RecallQuestion,
    SessionFound,
    Source,
    TurnSource,
)
from retrieval.recall.statement import BY_VECTORS, BY_WORDS, SAMPLED_BY_VECTORS, SAMPLED_BY_WORDS, SESSIONS
from retrieval.sealed import SealOf, UserSeal
from retrieval.sessions.messages import SessionTurn
from retrieval.text import with_parts
from retrieval.tokens import count_tokens

LATER_SHARE = 0.2
"""Share of an answer's places that turns which followed the best turns get at least."""
UNRELATED = 2.0
"""Similarity that no text reaches: if the model was not measured, only keywords decide whether a text is related."""


@dataclass(frozen=True, slots=True)
class LargeBanks:
    """Banks so large that a recall compares only a sample of the texts; only a bank's first recall is exact.

    Attributes:
        texts: number of a profile's texts, at its last recall, above which recalls draw a sample; within one session
            they never do.
        sample: approximate number of texts in the sample, which a hash of the texts' ids draws.
    """

    texts: int = 20_000
    sample: int = 2_000
    _known: LRUCache[tuple[str, str, frozenset[str]], int] = field(default_factory=lambda: LRUCache(10_000))

    def size(self, user_sub: str, question: RecallQuestion) -> tuple[int, int] | None:
        """Returns the number of texts in a large bank, and the size of its sample; None: the bank is not large."""
        texts = self._known.get((user_sub, question.agent_key, frozenset(question.kinds)), 0)
        return (texts, min(self.sample, texts)) if texts > self.texts else None

    def learn(self, user_sub: str, question: RecallQuestion, recalled: Recalled) -> None:
        """Remembers how many texts the recall searched, unless it was about one session or a time in the past."""
        if recalled.texts and question.session is None and question.as_of is None:
            self._known[user_sub, question.agent_key, frozenset(question.kinds)] = recalled.texts


async def recall(
    connection: FastConnection,
    question: RecallQuestion,
    meaning: Mapping[str, object],
    seal_of: SealOf,
    size: tuple[int, int] | None = None,
) -> Recalled:
    """Returns the memories and the sessions that the question is about, the best first.

    A memory is left out if it neither shares a word with the question nor is similar enough to be related to it, or if
    it does not decrypt.

    ``meaning`` has the question's ``vector`` (of ``vector_text``) and ``model``, and ``least``, the least similarity of
    a related text, if the model was measured; empty: memories are found by words only. ``size`` are the numbers of
    texts in a large bank and in the sample to draw (see ``statement``); None: all are compared.
    """
    parameters: dict[str, object] = {
        "agent_key": question.agent_key,
        "query": searchable(with_parts(question.query)),
        "kinds": list(question.kinds),
        "session": question.session,
        "as_of": question.as_of,
        "least": UNRELATED,
        "top_k": question.top_k,
        **meaning,
    }
    by_vectors, by_words = BY_VECTORS, BY_WORDS
    if size is not None and question.session is None:
        by_vectors, by_words = SAMPLED_BY_VECTORS, SAMPLED_BY_WORDS
        parameters |= dict(zip(("texts", "sample"), size, strict=True))
    rows = await connection.all(by_vectors if meaning else by_words, parameters)
    if not rows:
        return Recalled()
    key_ids = [row.key_id for row in rows if row.key_id is not None]
    seal = await seal_of(connection, key_ids[0]) if key_ids else None
    memories, later = list[RecalledMemory](), list[list[RecalledMemory]]()
    for row in rows:
        if row.place <= question.top_k:
            with suppress(SealBroken):
                memories.append(_opened(row, seal))
                later.append(_later(row, seal))
    memories = _with_later(memories, later, question.top_k)
    fitting, tokens = list[RecalledMemory](), 0
    for memory in memories:  # a shorter one may follow one that does not fit
        cost = count_tokens(memory.text)
        if tokens + cost <= question.token_budget:
            fitting.append(memory)
            tokens += cost
    named = {row.session_place: row for row in rows if row.best_of_session and row.session_place is not None}
    sessions = [
        SessionFound(row.session_name or "", row.session_relevance or 0.0)
        for place, row in sorted(named.items())
        if place <= SESSIONS
    ]
    return Recalled(fitting, tokens, len(memories) - len(fitting), sessions, texts=rows[0].texts)


def _later(row: Record, seal: UserSeal | None) -> list[RecalledMemory]:
    """Returns the turns that followed a found turn in its session, as memories."""
    later: list[RecalledMemory] = []
    if seal is None or row.session_id is None or row.kind != "turn":
        return later
    for number, (payload, said_at) in enumerate(zip(row.payloads or (), row.times or (), strict=True), row.number + 1):
        with suppress(SealBroken):
            turn = SessionTurn(number, said_at, seal.open("turn", payload, row.session_id, number))
            source = TurnSource(row.session_name or "", number, turn.role, said_at)
            if turn.text:
                later.append(RecalledMemory("turn", turn.text, row.place, row.relevance, None, source))
    return later


def _with_later(
    hits: Sequence[RecalledMemory], later: Sequence[Sequence[RecalledMemory]], top_k: int
) -> list[RecalledMemory]:
    """Returns the memories found, with turns that followed the best turns, because these may take back what was said.

    The following turns fill the free places, but at least LATER_SHARE of all places, where they replace the last
    memories.
    """
    places = max(top_k - len(hits), int(top_k * LATER_SHARE))
    known = {each.source for each in hits}
    memories: list[RecalledMemory] = []
    for hit, followers in zip(hits, later, strict=True):
        new = [each for each in followers if each.source not in known][:places]
        places -= len(new)
        known |= {each.source for each in new}
        memories += [hit, *new]
    return [replace(each, rank=rank) for rank, each in enumerate(memories[:top_k], start=1)]


def _opened(row: Record, seal: UserSeal | None) -> RecalledMemory:
    source: Source
    if seal is None or row.shared:
        text = text_of({"title": row.title, "text": row.text})
        source = KnowledgeSource(row.knowledge_id, row.category, row.entry_type, shared=True)
        return RecalledMemory(row.kind, text, row.place, row.relevance, row.similarity, source)
    if row.session_id is not None and row.kind == "turn":
        turn = SessionTurn(row.number, row.said_at, seal.open("turn", row.payload, row.session_id, row.number))
        text, source = turn.text, TurnSource(row.session_name or "", row.number, turn.role, row.said_at)
    elif row.kind == "knowledge":
        text = text_of(seal.open("knowledge", row.entry_words, row.knowledge_id))
        source = KnowledgeSource(row.knowledge_id, row.category, row.entry_type)
    else:
        text = seal.open("fact", row.words, row.fact_id)["text"]
        source = FactSource(row.fact_id, row.fact_kind, row.said_by, row.valid_from, row.valid_to)
    return RecalledMemory(row.kind, text, row.place, row.relevance, row.similarity, source, row.id)
