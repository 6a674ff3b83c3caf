"""The statement of a recall: reads the profile's memories that a question may be about, in the order of relevance.

Knowledge is read from the user's own entries and from those that all users of the agent share.
``retrieval.recall.relevance`` has the formula of relevance.

For a large bank, means and deviations come from a sample, which a hash of the memories' ids draws, the same one each
time: each text of the sample stands for as many as it was drawn from (Horvitz, Thompson 1952). In addition to the
sample the statement reads all texts with a word of the query that is rare in the sample, all that are far more similar
to the query than the sample's mean, and all facts and knowledge. For sessions only the rare words count.

After five executions Postgres makes one plan for all users. Then it cannot know how many rows the CTEs have, and would
compare each row with each: 5 s for 10,000 turns. So large CTEs are joined by FULL JOIN, which needs a hash or a merge;
no row is on the right side only. Means and deviations are computed from sums, because a window over all rows would sort
them.
"""

from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from sqlalchemy import DateTime, Float, Integer, Text, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import TypeEngine

from retrieval.database.fast_path import FastStatement
from retrieval.recall.relevance import Reading, standardised
from retrieval.tables.kinds import FactKind, MemoryKind, Speaker

LATER = 3
"""Number of following turns that are read with a turn."""
SESSIONS = 5
"""Number of sessions, the best, that an answer names."""
MOST_WITH_WORD = 3_000
"""Largest number of texts of a large bank, estimated from the sample, with a rare word; some word is always rare."""
NEAR_SD = 2.5
"""Standard deviations above the mean similarity at which a text of a large bank is read; about 1 in 160 is."""


class MemoryRow(Protocol):
    """A row of a recall: a memory with the columns of its turn, fact or entry of knowledge; the others are NULL.

    Attributes:
        place: place by relevance, from 1; a row beyond ``top_k`` is the best turn of a session that the answer names.
        relevance: standard deviations by which the memory fits better than the mean of its kind.
        session_place: place of the turn's session among sessions, from 1.
        best_of_session: true for the best turn of a session, from whose row the answer names the session.
        key_id: id of the key of the sealed text; None for a shared entry, whose text is in ``title`` and ``text``.
        payloads: sealed turns that followed this turn; ``times`` has their times.
        texts: number of the profile's texts of the requested kinds; estimated in a large bank.
    """

    kind: MemoryKind
    place: int
    relevance: float
    similarity: float | None
    session_place: int | None
    session_relevance: float | None
    best_of_session: bool
    key_id: UUID | None
    session_id: UUID | None
    session_name: str | None
    number: int
    said_at: datetime
    payload: bytes
    payloads: list[bytes] | None
    times: list[datetime] | None
    fact_id: UUID
    words: bytes
    fact_kind: FactKind
    said_by: Speaker
    valid_from: datetime
    valid_to: datetime | None
    knowledge_id: UUID
    entry_words: bytes
    shared: bool
    title: str
    text: str
    category: str
    entry_type: str
    texts: int


_BY_VECTOR = """CASE WHEN m.model = :model AND vector_dims(m.embedding) = vector_dims((SELECT CAST(:vector AS vector)))
             THEN 1 - (m.embedding <=> (SELECT CAST(:vector AS vector))) END"""
_UNKNOWN = "CAST(NULL AS float)"


_ENTERED = """
WITH entered AS MATERIALIZED (SELECT casebank_enter(:user_sub, :authorised_at) AS entered),
words AS MATERIALIZED (SELECT lexeme FROM unnest(to_tsvector('english', :query))),
any_word AS MATERIALIZED (
    SELECT CAST(replace(CAST(plainto_tsquery('english', :query) AS text), '&', '|') AS tsquery) AS words
),"""
_OF_PROFILE = """(SELECT entered FROM entered)
        AND m.user_sub = :user_sub AND m.agent_key = :agent_key AND m.kind = ANY (:kinds)
        AND EXISTS (SELECT FROM profiles p WHERE p.user_sub = :user_sub AND p.agent_key = :agent_key AND p.enabled)
        AND (m.kind <> 'fact' OR m.fact_id IN (
            SELECT f.id FROM facts f
            WHERE f.user_sub = :user_sub AND f.agent_key = :agent_key AND f.valid_from <= coalesce(:as_of, now())
                AND (f.valid_to IS NULL OR f.valid_to > coalesce(:as_of, now()))))
        AND (:session IS NULL OR m.kind <> 'turn' OR m.session_id =
            (SELECT s.id FROM sessions s WHERE s.user_sub = :user_sub AND s.name = :session))
        AND (:as_of IS NULL OR m.kind <> 'turn' OR EXISTS (
            SELECT FROM turns t
            WHERE t.user_sub = :user_sub AND t.session_id = m.session_id AND t.number = m.turn_number
                AND t.said_at <= :as_of))"""


_QUOTED = "chr(39) || replace(replace(lexeme, chr(92), repeat(chr(92), 2)), chr(39), repeat(chr(39), 2)) || chr(39)"
"""SQL for a lexeme, quoted for the text of a tsquery."""

_DRAWN = "(uuid_hash(id) & 65535) < 65536 * CAST(:sample AS float) / :texts"
"""Condition that draws the sample by a hash of a memory's id, the same for each recall."""


def _all(similarity: str) -> Reading:
    """Returns the SQL that reads every text of a bank."""
    entries = f"""
entries AS MATERIALIZED (
    SELECT m.id, m.kind, m.session_id, m.turn_number, m.fact_id, m.knowledge_id, false AS shared, m.word_count,
        CASE WHEN m.search_vector @@ w.words THEN m.search_vector END AS matching,
        CAST({similarity} AS float) AS similarity
    FROM memories m CROSS JOIN any_word w
    WHERE {_OF_PROFILE}
    UNION ALL
    {_shared(similarity)}
),
talks AS MATERIALIZED (
    SELECT session_id, sum(word_count) AS word_count FROM entries WHERE kind = 'turn' GROUP BY session_id
),"""  # noqa: S608 - its parts are our own
    return Reading(entries, "", "")


def _sampled(similarity: str) -> Reading:
    """Returns the SQL that reads a large bank: the texts that may rank first, and a sample of the others."""
    entries = f"""
drawn AS MATERIALIZED (
    SELECT id FROM memories WHERE (SELECT entered FROM entered) AND user_sub = :user_sub AND {_DRAWN}
),
sample AS MATERIALIZED (
    SELECT m.* FROM drawn d CROSS JOIN LATERAL (
        SELECT m.search_vector, CAST({similarity} AS float) AS similarity FROM memories m
        WHERE m.user_sub = :user_sub AND m.id = d.id AND m.agent_key = :agent_key AND m.kind = ANY (:kinds)
        LIMIT 1) m
),
frequencies AS MATERIALIZED (
    SELECT words.lexeme, count(h.lexeme) AS texts
    FROM words LEFT JOIN (
        SELECT (unnest(s.search_vector)).lexeme FROM sample s CROSS JOIN any_word w WHERE s.search_vector @@ w.words
    ) h ON h.lexeme = words.lexeme
    GROUP BY words.lexeme
),
rare_words AS MATERIALIZED (
    SELECT lexeme FROM (
        SELECT lexeme, sum(texts) OVER (ORDER BY texts, lexeme) AS so_far,
            row_number() OVER (ORDER BY texts, lexeme) AS place
        FROM frequencies) f
    WHERE place = 1 OR so_far * :texts <= {MOST_WITH_WORD} * CAST(:sample AS bigint)
),
outstanding AS MATERIALIZED (
    SELECT (SELECT avg(similarity) + {NEAR_SD} * stddev_pop(similarity) FROM sample) AS similarity,
        CAST(string_agg({_QUOTED}, '|') AS tsquery) AS words
    FROM rare_words
),
entries AS MATERIALIZED (
    SELECT m.id, m.kind, m.session_id, m.turn_number, m.fact_id, m.knowledge_id, false AS shared, m.word_count,
        CASE WHEN m.search_vector @@ w.words THEN m.search_vector END AS matching,
        m.similarity, CASE WHEN m.certain THEN 1 ELSE CAST(:texts AS float) / :sample END AS stands_for
    FROM (
        SELECT m.*, m.kind <> 'turn' OR coalesce(m.search_vector @@ o.words, false)
            OR coalesce(m.similarity >= o.similarity, false) AS certain
        FROM (
            SELECT m.id, m.kind, m.session_id, m.turn_number, m.fact_id, m.knowledge_id, m.word_count,
                m.search_vector, CAST({similarity} AS float) AS similarity
            FROM memories m WHERE {_OF_PROFILE}
            OFFSET 0) m
            CROSS JOIN outstanding o
        OFFSET 0) m
        CROSS JOIN any_word w
    WHERE m.certain OR {_DRAWN}
    UNION ALL
    SELECT *, 1 FROM ({_shared(similarity)}) s
),
talks AS MATERIALIZED (
    SELECT s.id AS session_id,
        s.turn_count * (
            SELECT sum(stands_for * word_count) / sum(stands_for) FROM entries WHERE kind = 'turn') AS word_count
    FROM sessions s
    WHERE s.user_sub = :user_sub AND s.agent_key = :agent_key AND 'turn' = ANY (:kinds)
),"""  # noqa: S608 - its parts are our own
    return Reading(entries, "stands_for", "AND lexeme IN (SELECT lexeme FROM rare_words)")


def _shared(similarity: str) -> str:
    """Returns the SQL that reads the agent's shared knowledge."""
    return f"""SELECT m.id, 'knowledge', CAST(NULL AS uuid), CAST(NULL AS int), CAST(NULL AS uuid), m.knowledge_id,
        true, m.word_count, CASE WHEN m.search_vector @@ w.words THEN m.search_vector END,
        CAST({similarity} AS float)
    FROM shared_memories m CROSS JOIN any_word w
    WHERE (SELECT entered FROM entered) AND m.agent_key = :agent_key AND 'knowledge' = ANY (:kinds)
        AND NOT EXISTS (
            SELECT FROM profiles p WHERE p.user_sub = :user_sub AND p.agent_key = :agent_key AND NOT p.enabled)"""  # noqa: S608 - its parts are our own


_ANSWER = f"""standing AS (
    SELECT s.*, {standardised("s.total", "t.mean", "t.sd")} AS relevance FROM summed s JOIN totals t ON t.kind = s.kind
),
placed AS (
    SELECT *,
        row_number() OVER (ORDER BY relevance DESC, total DESC, id DESC) AS place,
        row_number() OVER (PARTITION BY session_id ORDER BY own DESC, id DESC) = 1
            AND session_id IS NOT NULL AS best_of_session,
        CASE WHEN session_id IS NOT NULL THEN
            dense_rank() OVER (ORDER BY session_relevance DESC NULLS LAST, session_id DESC) END AS session_place
    FROM standing WHERE has_word OR similarity >= :least
),
shown AS (SELECT * FROM placed WHERE place <= :top_k OR (best_of_session AND session_place <= {SESSIONS}))
SELECT p.kind, p.place, p.relevance, p.similarity, p.session_place, p.session_relevance, p.best_of_session,
    coalesce(s.key_id, f.key_id, n.key_id) AS key_id, s.id AS session_id, s.name AS session_name,
    t.number, t.said_at, t.payload, later.payloads, later.times,
    f.id AS fact_id, f.words, f.kind AS fact_kind, f.said_by, f.valid_from, f.valid_to,
    coalesce(n.id, h.id) AS knowledge_id, n.words AS entry_words, p.shared, h.title, h.text,
    coalesce(n.category, h.category) AS category, coalesce(n.entry_type, h.entry_type) AS entry_type,
    (SELECT CAST(sum(texts) AS integer) FROM sizes WHERE kind <> 'session') AS texts
FROM shown p
    LEFT JOIN sessions s ON s.user_sub = :user_sub AND s.id = p.session_id
    LEFT JOIN LATERAL (
        SELECT t.number, t.said_at, t.payload FROM turns t
        WHERE t.user_sub = :user_sub AND t.session_id = p.session_id AND t.number = p.turn_number
        LIMIT 1) t ON true
    LEFT JOIN LATERAL (
        SELECT array_agg(n.payload ORDER BY n.number) AS payloads, array_agg(n.said_at ORDER BY n.number) AS times
        FROM turns n
        WHERE n.user_sub = :user_sub AND n.session_id = p.session_id
            AND n.number BETWEEN p.turn_number + 1 AND p.turn_number + {LATER}
            AND (:as_of IS NULL OR n.said_at <= :as_of)) later ON true
    LEFT JOIN facts f ON f.user_sub = :user_sub AND f.id = p.fact_id
    LEFT JOIN knowledge n ON n.user_sub = :user_sub AND n.id = p.knowledge_id AND NOT p.shared
    LEFT JOIN shared_knowledge h ON h.id = p.knowledge_id AND p.shared
ORDER BY p.place
"""  # noqa: S608 - its parts are our own


def _statement(reading: Reading) -> FastStatement[MemoryRow]:
    sql = _ENTERED + reading.entries + reading.keywords() + reading.relevance() + _ANSWER
    types: dict[str, TypeEngine[Any]] = {
        "user_sub": Text(),
        "authorised_at": DateTime(timezone=True),
        "agent_key": Text(),
        "query": Text(),
        "kinds": ARRAY(Text),
        "session": Text(),
        "as_of": DateTime(timezone=True),
        "model": Text(),
        "vector": Text(),
        "least": Float(),
        "top_k": Integer(),
        "texts": Integer(),
        "sample": Integer(),
    }
    bound = [bindparam(name, type_=type_) for name, type_ in types.items() if f":{name}" in sql]
    return FastStatement.of(text(sql).bindparams(*bound))


BY_VECTORS = _statement(_all(_BY_VECTOR))
"""Statement that compares vectors, for pgvector, with the parameters ``vector`` (of ``vector_text``) and ``model``."""
BY_WORDS = _statement(_all(_UNKNOWN))
SAMPLED_BY_VECTORS = _statement(_sampled(_BY_VECTOR))
"""Statement for a large bank, with the further parameters ``texts`` (number of its texts) and ``sample`` (size)."""
SAMPLED_BY_WORDS = _statement(_sampled(_UNKNOWN))
