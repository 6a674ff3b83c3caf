"""SQL for the relevance of memories: keywords and similarity, each standardised among memories of the same kind.

Keywords are weighed by BM25 (Robertson, Zaragoza 2009; k1 1.2, b .75), exactly, over the profile's own rows: a lexeme's
idf is computed among the memories of one kind, and for sessions among all sessions, each as one text. Each measure is
standardised among its kind, which says by how much one memory is better than others, and then added:

    own     = z(keywords) + VECTOR_WEIGHT · z(similarity)
    turn    = own + z(keywords of its session)
    session = z(keywords) + z(own of its best turn)

Memories of different kinds are compared by how much each stands out among its own kind. VECTOR_WEIGHT is what vectors
are worth beside keywords, see docs/decisions/0016; all other weights are 1.
"""

from dataclasses import dataclass

VECTOR_WEIGHT = 0.5


def standardised(measure: str, mean: str, deviation: str) -> str:
    """Returns the SQL for a measure's distance from its mean, in standard deviations; 0 if all values are equal."""
    return f"coalesce(({measure} - {mean}) / nullif({deviation}, 0), 0)"


def _z_of_all(measure: str) -> str:
    """Returns the SQL for a column's distance from its mean over all rows, in standard deviations; for few rows."""
    return standardised(measure, f"avg({measure}) OVER ()", f"stddev_pop({measure}) OVER ()")


@dataclass(frozen=True, slots=True)
class Reading:
    """SQL that reads the texts of a bank, all of them or a sample.

    Attributes:
        entries: CTEs that read the texts as ``entries``, and the lengths of sessions as ``talks``.
        stands_for: name of the column with the number of texts that a row of ``entries`` represents; empty: each row is
            one text.
        in_sessions: condition on the keyword hits that count for sessions.
    """

    entries: str
    stands_for: str
    in_sessions: str

    def count(self) -> str:
        """Returns the SQL for the number of the bank's texts."""
        return f"sum({self.stands_for})" if self.stands_for else "count(*)"

    def mean(self, measure: str) -> str:
        """Returns the SQL for the mean of a measure over all texts that have it."""
        if not self.stands_for:
            return f"avg({measure})"
        return f"sum({self.stands_for} * {measure}) / sum({self.stands_for}) FILTER (WHERE {measure} IS NOT NULL)"

    def deviation(self, measure: str) -> str:
        """Returns the SQL for the standard deviation of a measure over all texts that have it."""
        if not self.stands_for:
            return f"stddev_pop({measure})"
        squares = self.mean(f"power({measure}, 2)")
        return f"sqrt(greatest({squares} - power({self.mean(measure)}, 2), 0))"

    def sum(self, measure: str) -> str:
        """Returns the SQL for the sum of a measure over all texts."""
        return f"sum({self.stands_for} * {measure})" if self.stands_for else f"sum({measure})"

    def keywords(self) -> str:
        """Returns the CTEs that weigh each text and each session by BM25."""
        stands_for = f", {self.stands_for}" if self.stands_for else ""
        return f"""
sizes AS MATERIALIZED (
    SELECT kind, {self.count()} AS texts, greatest({self.mean("word_count")}, 1) AS mean,
        {self.mean("similarity")} AS similarity, {self.deviation("similarity")} AS similarity_sd
    FROM entries GROUP BY kind
    UNION ALL
    SELECT 'session', count(*), greatest(avg(word_count), 1), NULL, NULL FROM talks
),
hits AS MATERIALIZED (
    SELECT e.kind, e.id, e.session_id, e.word_count, (e.word).lexeme,
        cardinality((e.word).positions) AS times{stands_for}
    FROM (
        SELECT kind, id, session_id, word_count, unnest(matching) AS word{stands_for}
        FROM entries WHERE matching IS NOT NULL
    ) e
        JOIN words ON words.lexeme = (e.word).lexeme
),
all_hits AS MATERIALIZED (
    SELECT kind, id, word_count, lexeme, times{stands_for} FROM hits
    UNION ALL
    SELECT 'session', h.session_id, t.word_count, h.lexeme, h.times{", 1" if stands_for else ""}
    FROM (
        SELECT session_id, lexeme, sum(times) AS times FROM hits WHERE kind = 'turn' {self.in_sessions}
        GROUP BY session_id, lexeme
    ) h
        JOIN talks t ON t.session_id = h.session_id
),
rare AS MATERIALIZED (
    SELECT h.kind, h.lexeme, s.mean, CAST(ln(1 + (s.texts - h.having + .5) / (h.having + .5)) AS float) AS idf
    FROM (SELECT kind, lexeme, {self.count()} AS having FROM all_hits GROUP BY kind, lexeme) h
        JOIN sizes s ON s.kind = h.kind
),
keywords AS MATERIALIZED (
    SELECT h.kind, h.id,
        sum(r.idf * h.times * 2.2 / (h.times + 1.2 * (.25 + .75 * CAST(h.word_count / r.mean AS float)))) AS bm25
        {", max(h.stands_for) AS stands_for" if stands_for else ""}
    FROM all_hits h JOIN rare r ON r.kind = h.kind AND r.lexeme = h.lexeme
    GROUP BY h.kind, h.id
),
"""  # noqa: S608 - its parts are our own

    def relevance(self) -> str:
        """Returns the CTEs that add keywords, similarity and the session's share, each in standard deviations."""
        stands_for = bool(self.stands_for)
        of = "talks" if stands_for else "o"
        return f"""spreads AS MATERIALIZED (
    SELECT s.kind, s.similarity, s.similarity_sd, coalesce(k.sum, 0) / s.texts AS bm25,
        sqrt(greatest(coalesce(k.squares, 0) / s.texts - power(coalesce(k.sum, 0) / s.texts, 2), 0)) AS bm25_sd
    FROM sizes s
        LEFT JOIN (
            SELECT kind, {self.sum("bm25")} AS sum, {self.sum("bm25 * bm25")} AS squares
            FROM keywords GROUP BY kind
        ) k
            ON k.kind = s.kind
    WHERE s.kind <> 'session'
),
owned AS MATERIALIZED (
    SELECT e.kind, e.id, e.session_id, e.turn_number, e.fact_id, e.knowledge_id, e.shared, e.similarity,
        {"e.stands_for," if stands_for else ""}
        k.bm25 IS NOT NULL AS has_word,
        {standardised("coalesce(k.bm25, 0)", "s.bm25", "s.bm25_sd")}
            + {VECTOR_WEIGHT} * {standardised("e.similarity", "s.similarity", "s.similarity_sd")} AS own
    FROM entries e
        FULL JOIN (SELECT * FROM keywords WHERE kind <> 'session') k ON k.id = e.id
        FULL JOIN spreads s ON s.kind = e.kind
),
conversations AS (
    SELECT {of}.session_id, coalesce(k.bm25, 0) AS bm25, o.best
    FROM (SELECT session_id, max(own) AS best FROM owned WHERE kind = 'turn' GROUP BY session_id) o
        {"RIGHT JOIN talks ON talks.session_id = o.session_id" if stands_for else ""}
        FULL JOIN (SELECT id, bm25 FROM keywords WHERE kind = 'session') k ON k.id = {of}.session_id
),
shares AS MATERIALIZED (
    SELECT session_id, {_z_of_all("bm25")} AS share, {_z_of_all("bm25")} + {_z_of_all("best")} AS session_relevance
    FROM conversations
),
summed AS MATERIALIZED (
    SELECT o.*, o.own + coalesce(s.share, 0) AS total, s.session_relevance
    FROM owned o FULL JOIN shares s ON s.session_id = o.session_id
),
totals AS MATERIALIZED (
    SELECT kind, {self.mean("total")} AS mean, {self.deviation("total")} AS sd FROM summed GROUP BY kind
),
"""  # noqa: S608 - its parts are our own
