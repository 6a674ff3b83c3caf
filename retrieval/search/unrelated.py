"""Finds candidates that are unrelated to the query; they are never shown, however few other candidates there are.

The nearest case need not be near. A case whose similarity the embedding model's calibration calls unrelated stays only
if it shares a rare word with the query, such as a name or an error message that the model does not know. The
calibration uses English sentences. If unlike cases of the profile are nearer to each other than these, because of their
language or subject, a case must be nearer to the query than they are, or share some word with it. A profile with too
few unlike cases is held to the similarity of the query to sentences in its language.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from uuid import UUID

from sqlalchemy import (
    Boolean,
    ColumnElement,
    Float,
    Text,
    Uuid,
    any_,
    bindparam,
    case,
    column,
    exists,
    func,
    literal_column,
    not_,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, TSQUERY

from policy.channels import UNSPACED, searchable
from retrieval.database.fast_path import FastConnection, FastStatement, Record
from retrieval.database.parameters import USER_SUB, may_enter, parameter
from retrieval.search.candidates import Candidate, CaseSearch
from retrieval.search.keywords import has_words, in_memory
from retrieval.search.scope import Scope, ready
from retrieval.tables.cases import cases
from retrieval.tables.columns import SEARCH_CONFIGURATION

SAMPLE = 1_000
"""Number of cases, the newest, in which the rarity of a word is counted."""
RARE_PART = 0.1
"""Largest share of these cases that may have a word for the word to count as rare."""
RARE_CASES = 3
"""Number of cases that may have a rare word in any bank, because in a small one rarity cannot be counted."""


ENOUGH = 3
"""Worth of a shared word, which a case must reach; a shared pair of letters of a script without spaces is worth 1."""
_STOP_LISTS = (
    "danish dutch english finnish french german hungarian italian norwegian portuguese russian spanish swedish turkish"
)
"""Languages whose stop words Postgres knows."""
_LISTED = text(
    f"""
    SELECT listed.word AS text, plainto_tsquery('{SEARCH_CONFIGURATION}', listed.word) AS word
    FROM unnest(tsvector_to_array(to_tsvector('simple', :query))) AS listed (word)
    WHERE listed.word ~ '[a-z0-9{UNSPACED}]|[\uac00-\ud7a3]{{3}}|.{{4}}'
    """  # noqa: S608 - its parts are our own
).bindparams(bindparam("query", type_=Text))
"""SQL for words of the query, each with its search; short words of a script without a stop list are left out."""
_IS_STOP_WORD: ColumnElement[bool] = literal_column(
    f"""EXISTS (
        SELECT FROM unnest(CAST('{{{_STOP_LISTS.replace(" ", ",")}}}' AS regconfig[])) AS lists (language)
        WHERE to_tsvector(lists.language, listed.text) = CAST('' AS tsvector))""",
    Boolean,
)
"""SQL for whether a row of ``listed`` is a stop word."""


@dataclass(frozen=True, slots=True)
class Floor:
    """Least similarities at which a text counts as related to a query.

    Attributes:
        of_model: similarity measured for the embedding model on English sentences.
        of_profile: similarity measured on the profile's own texts, in their language; at least ``of_model``.
    """

    of_model: float
    of_profile: float


async def unrelated(
    connection: FastConnection, search: CaseSearch, found: Sequence[Candidate], floor: Floor | None
) -> frozenset[UUID]:
    """Returns the ids of the candidates that are unrelated to the query.

    A case less similar than ``floor.of_model`` is unrelated unless it shares a rare word with the query; one less
    similar than ``floor.of_profile``, unless it shares any word. A case without a similarity, which was found by
    keywords only, is always related.

    Without a floor all candidates count as related.
    """
    if floor is None:
        return frozenset()
    far = {row.id: row for row in found if _below(row, floor.of_profile)}
    worded = [row.id for row in far.values() if row.keyword_rank is not None]
    parameters = {"agent_key": search.agent_key, "query": searchable(search.query), "case_ids": worded}
    sharing = await connection.all(_sharing(Scope.of(search.agent_key)), parameters) if worded else []
    return frozenset(far) - {each.id for each in sharing if each.rare or not _below(far[each.id], floor.of_model)}


def _below(row: Candidate, least: float) -> bool:
    """Returns whether the row has a similarity, and it is below this one."""
    return row.similarity is not None and row.similarity < least


@cache
def _sharing(scope: Scope) -> FastStatement[Record]:
    """Returns the statement for the cases whose words in common with the query are worth ENOUGH.

    Its column ``rare`` is true if the rare ones alone are enough.
    """
    ids = parameter("case_ids", ARRAY(Uuid))
    vector = in_memory(cases.c.search_vector).label("search_vector")
    mine = select(cases.c.id, vector).where(cases.c.user_sub == USER_SUB, cases.c.id == any_(ids))
    these = mine.cte("these").prefix_with("MATERIALIZED")
    listed = _LISTED.columns(column("text", Text), column("word", TSQUERY)).cte("listed").prefix_with("MATERIALIZED")
    enough: ColumnElement[int] = literal_column(str(ENOUGH))
    worth = case((listed.c.text.op("~")(literal_column(f"'^[{UNSPACED}]'")), literal_column("1")), else_=enough)
    shared = exists().where(has_words(these.c.search_vector, listed.c.word))  # first, for stop words take longer
    telling = select(listed.c.word, worth.label("worth")).where(shared, not_(_IS_STOP_WORD))
    words = telling.cte("words").prefix_with("MATERIALIZED")
    newest = select(vector).where(*ready(scope)).order_by(cases.c.created_at.desc(), cases.c.id.desc())
    sample = newest.limit(literal_column(str(SAMPLE))).cte("sample").prefix_with("MATERIALIZED")
    count = select(func.count()).select_from(sample)
    having = count.where(has_words(sample.c.search_vector, words.c.word)).scalar_subquery()
    most: ColumnElement[float] = func.greatest(
        literal_column(str(RARE_CASES), Float), literal_column(str(RARE_PART), Float) * count.scalar_subquery()
    )
    rare = select(words, (having <= most).label("rare")).cte("rare").prefix_with("MATERIALIZED")
    rare_worth = func.coalesce(func.sum(rare.c.worth).filter(rare.c.rare), literal_column("0"))
    return FastStatement(
        select(these.c.id, (rare_worth >= enough).label("rare"))
        .select_from(these.join(rare, has_words(these.c.search_vector, rare.c.word)))
        .where(may_enter())
        .group_by(these.c.id)
        .having(func.sum(rare.c.worth) >= enough)
    )
