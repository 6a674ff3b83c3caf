"""The statement of a recall: reads the profile's memories that a question may be about, in the order of relevance.

Knowledge is read from the user's own entries and from those that all users of the agent share.
``statements.toml`` has the SQL and the formula of relevance.

For a large bank, means and deviations come from a sample, which a hash of the memories' ids draws, the same one each
time: each text of the sample stands for as many as it was drawn from (Horvitz, Thompson 1952). In addition to the
sample the statement reads all texts with a word of the query that is rare in the sample, all that are far more similar
to the query than the sample's mean, and all facts and knowledge. For sessions only the rare words count.

After five executions Postgres makes one plan for all users. Then it cannot know how many rows the CTEs have, and would
compare each row with each: 5 s for 10,000 turns. So large CTEs are joined by FULL JOIN, which needs a hash or a merge;
no row is on the right side only. Means and deviations are computed from sums, because a window over all rows would sort
them.
"""

import re
from typing import Any

from sqlalchemy import DateTime, Float, Integer, Text, bindparam, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import TypeEngine

from retrieval.database.fast_path import FastStatement, Record
from retrieval.patterns import read

SESSIONS = 5
"""Number of sessions, the best, that an answer names."""


_READ = read("retrieval.recall", "statements.toml")


def sql_of(reading: str, measure: str) -> str:
    """Returns the SQL for a reading of texts, "all" or "sampled", that compares them "by_vector" or "by_words"."""
    parts: dict[str, str] = _READ["parts"] | _READ[reading] | {"sessions": str(SESSIONS)}
    parts["similarity"] = parts[measure]

    def filled(template: str) -> str:
        return re.sub(r"«(\w+) ?([^«»]*)»", lambda name: filled(parts[name[1]].replace("«of»", name[2])), template)

    return filled(parts["statement"])


def _statement(reading: str, measure: str) -> FastStatement[Record]:
    sql = sql_of(reading, measure)
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
    return FastStatement(text(sql).bindparams(*bound))


BY_VECTORS = _statement("all", "by_vector")
"""Statement that compares vectors, for pgvector, with the parameters ``vector`` (of ``vector_text``) and ``model``.

A row has the columns of a memory's turn, fact or entry of knowledge, the others are NULL, and these columns:

* ``id``: id of the memory, which an edit of its text changes;
* ``place``: place by relevance, from 1; a row beyond ``top_k`` is the best turn of a session that the answer names;
* ``relevance``: standard deviations by which the memory fits better than the mean of all memories searched;
* ``session_place``, ``best_of_session``: place of the turn's session, from 1, and whether the turn is its best one;
* ``key_id``: id of the key of the sealed text; NULL for a shared entry, whose text is in ``title`` and ``text``;
* ``payloads``, ``times``: sealed turns that followed this turn, and their times;
* ``texts``: number of the profile's texts of the requested kinds; estimated in a large bank.
"""
BY_WORDS = _statement("all", "by_words")
SAMPLED_BY_VECTORS = _statement("sampled", "by_vector")
"""Statement for a large bank, with the further parameters ``texts`` (number of its texts) and ``sample`` (size)."""
SAMPLED_BY_WORDS = _statement("sampled", "by_words")
