"""The one statement of a recall: every memory of the profile that may be meant, by how much it stands out.

Knowledge is the user's own and, beside it, the shared one of the agent.
Keywords by BM25 (Robertson, Zaragoza 2009; k1 1.2, b .75), exactly, over the profile's own rows: a lexeme's idf is that
among the memories of the kind, and for sessions among sessions, each as one text. Each measure is standardised among
its kind, so that it is known by how much one is better, and then added:

    own     = z(keywords) + VECTOR_WEIGHT · z(similarity)
    turn    = own + z(keywords of its session)
    session = z(keywords) + z(own of its best turn)

Kinds meet by how much a memory stands out among its own. The weight of vectors is what they are worth beside keywords,
see docs/decisions/0016; all others are 1.

Once Postgres plans for any user, after five executions, it cannot know how many rows the parts have, and would compare
each with each: 5 s for 10,000 turns. So what is large is joined in full, which takes a hash or a merge; no row is on
the right alone. Means and deviations are summed up, for a window over all would sort all.
"""

from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from sqlalchemy import REAL, DateTime, Float, Integer, Text, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import TypeEngine

from retrieval.database.fast_path import FastStatement
from retrieval.kinds import FactKind, MemoryKind, Speaker

VECTOR_WEIGHT = 0.5
SESSIONS = 5
"""How many of the best sessions are named."""


class MemoryRow(Protocol):
    """A memory that was found, beside its source: a turn, a fact, or an entry of knowledge.

    Attributes:
        place: 1-based, of those found; beyond ``top_k`` it is there as the best turn of its session.
        session_place: of its session, 1-based.
        best_of_session: whether the session is named by this row.
        key_id: of what its words are sealed with; None of a shared entry, whose words stand in ``title`` and ``text``.
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


_BY_VECTOR = """CASE WHEN m.model = :model AND vector_dims(m.embedding) = cardinality(:vector)
             THEN 1 - (m.embedding <=> (SELECT CAST(:vector AS vector))) END"""
_UNKNOWN = "CAST(NULL AS float)"


def _z(measure: str, mean: str, deviation: str) -> str:
    """Returns by how many standard deviations the measure is above the mean; 0 where all are alike."""
    return f"coalesce(({measure} - {mean}) / nullif({deviation}, 0), 0)"


def _z_of_all(measure: str) -> str:
    """Returns the same for a column among all rows, for there are few."""
    return _z(measure, f"avg({measure}) OVER ()", f"stddev_pop({measure}) OVER ()")


def _sql(similarity: str) -> str:
    return f"""
WITH entered AS MATERIALIZED (SELECT casebank_enter(:user_sub, :authorised_at) AS entered),
words AS MATERIALIZED (SELECT lexeme FROM unnest(to_tsvector('english', :query))),
any_word AS MATERIALIZED (
    SELECT CAST(replace(CAST(plainto_tsquery('english', :query) AS text), '&', '|') AS tsquery) AS words
),
entries AS MATERIALIZED (
    SELECT m.id, m.kind, m.session_id, m.turn_number, m.fact_id, m.knowledge_id, false AS shared, m.word_count,
        CASE WHEN m.search_vector @@ w.words THEN m.search_vector END AS matching,
        CAST({similarity} AS float) AS similarity
    FROM memories m CROSS JOIN any_word w
    WHERE (SELECT entered FROM entered)
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
            WHERE t.user_sub = m.user_sub AND t.session_id = m.session_id AND t.number = m.turn_number
                AND t.said_at <= :as_of))
    UNION ALL
    SELECT m.id, 'knowledge', NULL, NULL, NULL, m.knowledge_id, true, m.word_count,
        CASE WHEN m.search_vector @@ w.words THEN m.search_vector END,
        CAST({similarity} AS float)
    FROM shared_memories m CROSS JOIN any_word w
    WHERE (SELECT entered FROM entered) AND m.agent_key = :agent_key AND 'knowledge' = ANY (:kinds)
        AND NOT EXISTS (
            SELECT FROM profiles p WHERE p.user_sub = :user_sub AND p.agent_key = :agent_key AND NOT p.enabled)
),
talks AS MATERIALIZED (
    SELECT session_id, sum(word_count) AS word_count FROM entries WHERE kind = 'turn' GROUP BY session_id
),
sizes AS MATERIALIZED (
    SELECT kind, count(*) AS texts, greatest(avg(word_count), 1) AS mean,
        avg(similarity) AS similarity, stddev_pop(similarity) AS similarity_sd
    FROM entries GROUP BY kind
    UNION ALL
    SELECT 'session', count(*), greatest(avg(word_count), 1), NULL, NULL FROM talks
),
hits AS MATERIALIZED (
    SELECT e.kind, e.id, e.session_id, e.word_count, (e.word).lexeme, cardinality((e.word).positions) AS times
    FROM (
        SELECT kind, id, session_id, word_count, unnest(matching) AS word FROM entries WHERE matching IS NOT NULL
    ) e
        JOIN words ON words.lexeme = (e.word).lexeme
),
all_hits AS MATERIALIZED (
    SELECT kind, id, word_count, lexeme, times FROM hits
    UNION ALL
    SELECT 'session', h.session_id, t.word_count, h.lexeme, h.times
    FROM (SELECT session_id, lexeme, sum(times) AS times FROM hits WHERE kind = 'turn' GROUP BY session_id, lexeme) h
        JOIN talks t ON t.session_id = h.session_id
),
rare AS MATERIALIZED (
    SELECT h.kind, h.lexeme, s.mean, CAST(ln(1 + (s.texts - h.having + .5) / (h.having + .5)) AS float) AS idf
    FROM (SELECT kind, lexeme, count(*) AS having FROM all_hits GROUP BY kind, lexeme) h
        JOIN sizes s ON s.kind = h.kind
),
keywords AS MATERIALIZED (
    SELECT h.kind, h.id,
        sum(r.idf * h.times * 2.2 / (h.times + 1.2 * (.25 + .75 * CAST(h.word_count / r.mean AS float)))) AS bm25
    FROM all_hits h JOIN rare r ON r.kind = h.kind AND r.lexeme = h.lexeme
    GROUP BY h.kind, h.id
),
spreads AS MATERIALIZED (
    SELECT s.kind, s.similarity, s.similarity_sd, coalesce(k.sum, 0) / s.texts AS bm25,
        sqrt(greatest(coalesce(k.squares, 0) / s.texts - power(coalesce(k.sum, 0) / s.texts, 2), 0)) AS bm25_sd
    FROM sizes s
        LEFT JOIN (SELECT kind, sum(bm25) AS sum, sum(bm25 * bm25) AS squares FROM keywords GROUP BY kind) k
            ON k.kind = s.kind
    WHERE s.kind <> 'session'
),
owned AS MATERIALIZED (
    SELECT e.kind, e.id, e.session_id, e.turn_number, e.fact_id, e.knowledge_id, e.shared, e.similarity,
        k.bm25 IS NOT NULL AS has_word,
        {_z("coalesce(k.bm25, 0)", "s.bm25", "s.bm25_sd")}
            + {VECTOR_WEIGHT} * {_z("e.similarity", "s.similarity", "s.similarity_sd")} AS own
    FROM entries e
        FULL JOIN (SELECT * FROM keywords WHERE kind <> 'session') k ON k.id = e.id
        FULL JOIN spreads s ON s.kind = e.kind
),
conversations AS (
    SELECT o.session_id, coalesce(k.bm25, 0) AS bm25, o.best
    FROM (SELECT session_id, max(own) AS best FROM owned WHERE kind = 'turn' GROUP BY session_id) o
        FULL JOIN (SELECT id, bm25 FROM keywords WHERE kind = 'session') k ON k.id = o.session_id
),
shares AS MATERIALIZED (
    SELECT session_id, {_z_of_all("bm25")} AS share, {_z_of_all("bm25")} + {_z_of_all("best")} AS session_relevance
    FROM conversations
),
summed AS MATERIALIZED (
    SELECT o.*, o.own + coalesce(s.share, 0) AS total, s.session_relevance
    FROM owned o FULL JOIN shares s ON s.session_id = o.session_id
),
totals AS MATERIALIZED (SELECT kind, avg(total) AS mean, stddev_pop(total) AS sd FROM summed GROUP BY kind),
standing AS (
    SELECT s.*, {_z("s.total", "t.mean", "t.sd")} AS relevance FROM summed s JOIN totals t ON t.kind = s.kind
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
    t.number, t.said_at, t.payload,
    f.id AS fact_id, f.words, f.kind AS fact_kind, f.said_by, f.valid_from, f.valid_to,
    coalesce(n.id, h.id) AS knowledge_id, n.words AS entry_words, p.shared, h.title, h.text,
    coalesce(n.category, h.category) AS category, coalesce(n.entry_type, h.entry_type) AS entry_type
FROM shown p
    LEFT JOIN sessions s ON s.user_sub = :user_sub AND s.id = p.session_id
    LEFT JOIN turns t ON t.user_sub = :user_sub AND t.session_id = p.session_id AND t.number = p.turn_number
    LEFT JOIN facts f ON f.user_sub = :user_sub AND f.id = p.fact_id
    LEFT JOIN knowledge n ON n.user_sub = :user_sub AND n.id = p.knowledge_id AND NOT p.shared
    LEFT JOIN shared_knowledge h ON h.id = p.knowledge_id AND p.shared
ORDER BY p.place
"""  # noqa: S608 - its parts are our own


def _statement(similarity: str) -> FastStatement[MemoryRow]:
    sql = _sql(similarity)
    types: dict[str, TypeEngine[Any]] = {
        "user_sub": Text(),
        "authorised_at": DateTime(timezone=True),
        "agent_key": Text(),
        "query": Text(),
        "kinds": ARRAY(Text),
        "session": Text(),
        "as_of": DateTime(timezone=True),
        "model": Text(),
        "vector": ARRAY(REAL),
        "least": Float(),
        "top_k": Integer(),
    }
    bound = [bindparam(name, type_=type_) for name, type_ in types.items() if f":{name}" in sql]
    return FastStatement.of(text(sql).bindparams(*bound))


BY_VECTORS = _statement(_BY_VECTOR)
"""With the parameters ``vector`` and ``model``; needs pgvector."""
BY_WORDS = _statement(_UNKNOWN)
