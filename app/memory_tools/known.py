"""Facts about the user for a tool's answer: those that hold today, the nearest to the query first.

Recall ranks those that it finds, by words and meaning. It leaves out goals and preferences that are far from the query;
they follow, ranked by the words they share with the query.
"""

import math
import re
import sys
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from uuid import UUID

import snowballstemmer

from app.memory_tools.asking import Asking
from retrieval.facts.listing import facts_to_rank
from retrieval.pages.listing import one_profile
from retrieval.recall.memory import MOST, FactSource, RecallQuestion
from retrieval.sealed import UNREADABLE
from retrieval.sections.quoting import quoted, unquoted
from retrieval.tables.kinds import FactKind, Speaker
from retrieval.text import folded
from writer.privacy.words import words_of_page

LOOK = 500
"""Maximum number of facts that are decrypted for one answer: those that recall finds, and the newest others."""
_STEMMER = snowballstemmer.stemmer("english")


@dataclass(frozen=True, slots=True)
class KnownFact:
    """A decrypted fact that holds today, with its relevance to the query.

    Attributes:
        value: attribute, value and unit that were recognised in the text, as "height 180 cm"; empty: no value.
        said_by: speaker of the turn that stated the fact.
        since: first day on which the fact held.
    """

    id: UUID
    kind: FactKind
    text: str
    value: str
    said_by: Speaker
    since: date
    relevance: float

    def line(self) -> str:
        """Returns the fact as one line: id, quoted text, and speaker."""
        value = f", {quoted(self.value)}" if self.value else ""
        by = "" if self.said_by == "user" else f", said by the {self.said_by}"
        return f"[{unquoted(self.kind)} {self.id}] {quoted(self.text)}{value} (since {self.since.isoformat()}{by})"


async def facts_for(
    asking: Asking, query: str | None, limit: int, *, kinds: Collection[FactKind], always: Collection[FactKind]
) -> list[KnownFact]:
    """Returns facts of these kinds, by falling relevance and then the newest first; an empty list if memory is off.

    Without a query all facts are equally relevant. Facts of the kinds ``always`` are returned even if they share no
    word with it. Facts that do not decrypt say so, and come last.
    """
    author, parts = asking.author, asking.parts
    near: dict[UUID, int] = {}
    if query is not None:
        question = RecallQuestion(asking.agent, query, MOST, ("fact",), token_budget=sys.maxsize)
        recall = await parts.reader.recall(author.user_sub, author.authorised_at, question)
        near = {each.source.fact_id: each.rank for each in recall.memories if isinstance(each.source, FactSource)}
    wanted = facts_to_rank(author.user_sub, asking.agent, kinds, near, LOOK)
    async with parts.database.as_user(author.user_sub, author.authorised_at) as connection:
        profile = (await connection.execute(one_profile(author.user_sub, asking.agent))).mappings().one_or_none()
        if profile is None or not profile["enabled"]:
            return []
        rows = (await connection.execute(wanted)).mappings().all()
        words = await words_of_page(parts.keyring, connection, author.user_sub) if rows else None
    if words is None:
        return []
    opened = [words.open("fact", row["words"], row["id"]) for row in rows]
    relevances = relevance(query or "", [each["text"] for each in opened])
    facts = []
    for row, of, share in zip(rows, opened, relevances, strict=True):
        if row["id"] in near or share > 0 or row["kind"] in always:
            since = row["valid_from"].date()
            attribute = "" if of["value"].startswith(of["attribute"]) else of["attribute"]
            value = " ".join(filter(None, (attribute, of["value"], of["unit"]))) if of["value"] else ""
            facts.append(KnownFact(row["id"], row["kind"], of["text"], value, row["said_by"], since, share))
    facts.sort(key=lambda fact: (fact.text == UNREADABLE, near.get(fact.id, MOST + 1), -fact.relevance))
    return facts[:limit]


def relevance(query: str, texts: Sequence[str]) -> list[float]:
    """Returns the relevance of each text: the sum over the words it shares with the query, rare words counting more.

    A word in n of N texts counts log(1 + N / n); words are compared by their stems.
    """
    stems_of_texts = [_stems(text) for text in texts]
    counts = Counter(stem for stems in stems_of_texts for stem in stems)
    wanted = _stems(query)
    return [sum(math.log1p(len(texts) / counts[stem]) for stem in wanted & stems) for stems in stems_of_texts]


def _stems(text: str) -> frozenset[str]:
    return frozenset(_STEMMER.stemWords(re.findall(r"\w+", folded(text))))
