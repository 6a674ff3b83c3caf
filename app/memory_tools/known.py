"""The facts that a tool tells: those that hold, the ones that share words with the query first.

Here and not by a recall, for goals and preferences are told without a word in common, too.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date
from uuid import UUID

import snowballstemmer

from app.memory_tools.asking import Asking
from retrieval.facts.listing import FactPage, page_of_facts
from retrieval.pages.listing import one_profile
from retrieval.sections.quoting import quoted, unquoted
from retrieval.tables.kinds import FactKind, Speaker
from retrieval.text import folded
from writer.privacy.words import Words

LOOK = 500
"""Facts, the newest, that are looked at for one answer; each has to be opened first."""
_STEMMER = snowballstemmer.stemmer("english")


@dataclass(frozen=True, slots=True)
class KnownFact:
    """A fact that holds, opened, and how much its words have in common with the query."""

    id: UUID
    kind: FactKind
    text: str
    value: str
    said_by: Speaker
    since: date
    relevance: float

    def line(self) -> str:
        """Returns the fact as one line: its id, what it says as data, and whose word it is."""
        value = f", {quoted(self.value)}" if self.value else ""
        by = "" if self.said_by == "user" else f", said by the {self.said_by}"
        return f"[{unquoted(self.kind)} {self.id}] {quoted(self.text)}{value} (since {self.since.isoformat()}{by})"


async def facts_for(
    asking: Asking, query: str | None, limit: int, *, kinds: Collection[FactKind], always: Collection[FactKind]
) -> list[KnownFact]:
    """Returns facts of these kinds, the most relevant first and then the newest; none where memory is off.

    Args:
        asking: whose.
        query: what they are compared with; None: nothing is more relevant than anything.
        limit: how many at most.
        kinds: which are looked at.
        always: which are told without a word in common, too.
    """
    author, parts = asking.author, asking.parts
    page = FactPage(asking.agent, None, None, None, history=False, before=None, limit=LOOK)
    async with parts.database.as_user(author.user_sub, author.authorised_at) as connection:
        profile = (await connection.execute(one_profile(author.user_sub, asking.agent))).mappings().one_or_none()
        if profile is None or not profile["enabled"]:
            return []
        rows = (await connection.execute(page_of_facts(author.user_sub, page))).mappings().all()
        key = await parts.keyring.find(connection, author.user_sub) if rows else None
    if key is None:
        return []
    words = Words(author.user_sub, key)
    wanted = [row for row in rows if row["kind"] in kinds]
    said = [words.open_fact(row["id"], row["words"]) for row in wanted]
    relevances = relevance(query or "", [each["text"] for each in said])
    found = [
        KnownFact(row["id"], row["kind"], of["text"], _value(of), row["said_by"], row["valid_from"].date(), share)
        for row, of, share in zip(wanted, said, relevances, strict=True)
        if share > 0 or row["kind"] in always
    ]
    return sorted(found, key=lambda fact: -fact.relevance)[:limit]


def _value(said: dict[str, str]) -> str:
    """Returns what could be read off the text besides itself; empty where nothing could."""
    read = " ".join(filter(None, (said["attribute"], said["value"], said["unit"])))
    return read if said["value"] else ""


def relevance(query: str, texts: Sequence[str]) -> list[float]:
    """Returns for each text the sum over the words that it shares with the query, a rare one counting more.

    A word in n of N texts counts log(1 + N / n); words are compared by their stems.
    """
    said = [_stems(text) for text in texts]
    having = Counter(stem for stems in said for stem in stems)
    asked = _stems(query)
    return [sum(math.log1p(len(texts) / having[stem]) for stem in asked & stems) for stems in said]


def _stems(text: str) -> frozenset[str]:
    return frozenset(_STEMMER.stemWords(re.findall(r"\w+", folded(text))))
