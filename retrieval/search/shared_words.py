"""Part of the search statement (``candidates``): the best cases that share telling words with the query.

A word is telling if it is no stop word of any language whose stop words Postgres knows; it is rare if few of the
profile's newest cases have it, such as a name or an error message.
"""

from typing import Any

from sqlalchemy import (
    CTE,
    Boolean,
    ColumnElement,
    Text,
    bindparam,
    case,
    cast,
    column,
    exists,
    func,
    literal_column,
    not_,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import TSQUERY

from policy.channels import UNSPACED
from retrieval.search.keywords import has_words
from retrieval.tables.columns import SEARCH_CONFIGURATION

ENOUGH = 3
"""Worth of a shared word, which a case must reach; a shared pair of letters of a script without spaces is worth 1."""
_STOP_LISTS = (
    "danish dutch english finnish french german hungarian italian norwegian portuguese russian spanish swedish turkish"
)
"""Languages whose stop words Postgres knows."""
_LISTED = text(
    f"""
    SELECT
        listed.word AS text,
        split_part(CAST(plainto_tsquery('{SEARCH_CONFIGURATION}', listed.word) AS text), ' & ', 1) AS stem
    FROM unnest(tsvector_to_array(to_tsvector('simple', :query))) AS listed (word)
    WHERE listed.word ~ '[a-z0-9{UNSPACED}]|[\uac00-\ud7a3]{{3}}|.{{4}}'
    """  # noqa: S608 - its parts are our own
).bindparams(bindparam("query", type_=Text))
"""SQL for words of the query, each with its stem; a word of several parts has the stem of the whole.

Short words of a script without a stop list are left out.
"""
_IS_STOP_WORD: ColumnElement[bool] = literal_column(
    f"""EXISTS (
        SELECT FROM unnest(CAST('{{{_STOP_LISTS.replace(" ", ",")}}}' AS regconfig[])) AS lists (language)
        WHERE to_tsvector(lists.language, listed.text) = CAST('' AS tsvector))""",
    Boolean,
)
"""SQL for whether a row of ``listed`` is a stop word."""


def shared_words(found: CTE, words: CTE) -> CTE:
    """Returns a CTE with the ids of the cases whose telling words in common with the query are worth ENOUGH.

    Its column ``rare`` is true if the rare ones alone are enough.

    Args:
        found: CTE with ``id``, ``search_vector``, ``similarity`` and ``keyword_rank`` of each case; cases without one
            of the last two are passed over.
        words: CTE of the query's words, see ``keywords``.
    """
    compared = found.c.similarity.is_not(None), found.c.keyword_rank.is_not(None)
    these = select(found.c.id, found.c.search_vector).where(*compared).cte("these")
    listed = _LISTED.columns(column("text", Text), column("stem", Text)).cte("listed").prefix_with("MATERIALIZED")
    enough: ColumnElement[int] = literal_column(str(ENOUGH))
    worth = case((listed.c.text.op("~")(literal_column(f"'^[{UNSPACED}]'")), literal_column("1")), else_=enough)
    word: ColumnElement[Any] = cast(words.c.text, TSQUERY)
    shared = exists().where(has_words(these.c.search_vector, word))  # first, for stop words take longer
    telling = (
        select(word.label("word"), words.c.is_rare, worth.label("worth"))
        .select_from(listed.join(words, words.c.text == listed.c.stem))
        .where(shared, not_(_IS_STOP_WORD))
        .distinct()
        .cte("telling")
        .prefix_with("MATERIALIZED")
    )
    rare_worth = func.coalesce(func.sum(telling.c.worth).filter(telling.c.is_rare), literal_column("0"))
    return (
        select(these.c.id, (rare_worth >= enough).label("rare"))
        .select_from(these.join(telling, has_words(these.c.search_vector, telling.c.word)))
        .group_by(these.c.id)
        .having(func.sum(telling.c.worth) >= enough)
        .cte("shared_words")
    )
