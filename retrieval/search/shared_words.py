"""Part of the search statement (``candidates``): the best cases that share telling words with the query.

A word is telling if it is no stop word of any language whose stop words Postgres knows; it is rare if few of the
profile's newest cases have it, such as a name or an error message.
"""

from uuid import UUID

from sqlalchemy import (
    CTE,
    Boolean,
    ColumnElement,
    Float,
    Select,
    Text,
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
from sqlalchemy.dialects.postgresql import TSQUERY

from policy.channels import UNSPACED
from retrieval.search.keywords import has_words
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


def shared_words(found: CTE, searched: Select[UUID, object]) -> CTE:
    """Returns a CTE with the ids of the cases whose telling words in common with the query are worth ENOUGH.

    Its column ``rare`` is true if the rare ones alone are enough.

    Args:
        found: CTE with ``id``, ``search_vector``, ``similarity`` and ``keyword_rank`` of each case; cases without one
            of the last two are passed over.
        searched: the searched cases, with their ``search_vector``.
    """
    compared = found.c.similarity.is_not(None), found.c.keyword_rank.is_not(None)
    these = select(found.c.id, found.c.search_vector).where(*compared).cte("these")
    listed = _LISTED.columns(column("text", Text), column("word", TSQUERY)).cte("listed").prefix_with("MATERIALIZED")
    enough: ColumnElement[int] = literal_column(str(ENOUGH))
    worth = case((listed.c.text.op("~")(literal_column(f"'^[{UNSPACED}]'")), literal_column("1")), else_=enough)
    shared = exists().where(has_words(these.c.search_vector, listed.c.word))  # first, for stop words take longer
    telling = select(listed.c.word, worth.label("worth")).where(shared, not_(_IS_STOP_WORD))
    words = telling.cte("telling").prefix_with("MATERIALIZED")
    newest = searched.order_by(searched.selected_columns.id.desc()).limit(literal_column(str(SAMPLE)))
    sample = newest.cte("newest_texts").prefix_with("MATERIALIZED")
    count = select(func.count()).select_from(sample)
    having = count.where(has_words(sample.c.search_vector, words.c.word)).scalar_subquery()
    most: ColumnElement[float] = func.greatest(
        literal_column(str(RARE_CASES), Float), literal_column(str(RARE_PART), Float) * count.scalar_subquery()
    )
    each = select(words, (having <= most).label("rare")).cte("telling_rarity").prefix_with("MATERIALIZED")
    rare_worth = func.coalesce(func.sum(each.c.worth).filter(each.c.rare), literal_column("0"))
    return (
        select(these.c.id, (rare_worth >= enough).label("rare"))
        .select_from(these.join(each, has_words(these.c.search_vector, each.c.word)))
        .group_by(these.c.id)
        .having(func.sum(each.c.worth) >= enough)
        .cte("shared_words")
    )
