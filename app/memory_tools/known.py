"""Facts about the user for a tool's answer: those that hold today, the nearest to the query first.

Recall ranks those that it finds, by words and meaning. It leaves out goals and preferences that are far from the query;
they follow, ranked by the words they share with the query.
"""

import math
import re
import sys
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from uuid import UUID

import snowballstemmer
from sqlalchemy import RowMapping

from app.memory_tools.asking import Asking
from retrieval.pages.listing import one_profile
from retrieval.pages.memories import facts_to_rank
from retrieval.recall.memory import MOST, FactSource, RecallQuestion
from retrieval.sealed import UNREADABLE
from retrieval.sections.quoting import quoted, unquoted
from retrieval.tables.kinds import FactKind
from retrieval.text import folded

LOOK = 500
"""Maximum number of facts that are decrypted for one answer: those that recall finds, and the newest others."""
_STEMMER = snowballstemmer.stemmer("english")


async def facts_for(
    asking: Asking, query: str | None, limit: int, *, kinds: Collection[FactKind], always: Collection[FactKind]
) -> list[str]:
    """Returns facts of these kinds as lines, by falling relevance and then the newest first; none if memory is off.

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
        words = await parts.keyring.find_for_page(connection, author.user_sub) if rows else None
    if words is None:
        return []
    opened = [words.open("fact", row["words"], row["id"]) for row in rows]
    relevances = relevance(query or "", [each["text"] for each in opened])
    facts = []
    for row, fact, share in zip(rows, opened, relevances, strict=True):
        if row["id"] in near or share > 0 or row["kind"] in always:
            place = fact["text"] == UNREADABLE, near.get(row["id"], MOST + 1), -share
            facts.append((place, _line(row, fact)))
    facts.sort(key=lambda each: each[0])
    return [line for _, line in facts[:limit]]


def _line(row: RowMapping, fact: Mapping[str, str]) -> str:
    """Returns a fact as one line: id, quoted text, recognised value as in "height 180 cm", first day, and speaker."""
    value = ""
    if fact["value"]:
        attribute = "" if fact["value"].startswith(fact["attribute"]) else fact["attribute"]
        value = f", {quoted(' '.join(filter(None, (attribute, fact['value'], fact['unit']))))}"
    by = "" if row["said_by"] == "user" else f", said by the {row['said_by']}"
    return f"[{unquoted(row['kind'])} {row['id']}] {quoted(fact['text'])}{value} (since {row['valid_from'].date()}{by})"


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
