"""Relevance of a case's words to the query, by the rarity of each word among the searched cases.

BM25 (Robertson, Zaragoza 2009; k1 1.2, b .75), in whole bits: the words whose rarity is the same number of bits are
ranked at once by Postgres's ``ts_rank``, which counts what is in a text without taking its vector apart, eight times as
fast. So a word that comes often counts as ts_rank has it, the n-th time 1/n², in place of BM25's own damping.

How rare words are, and how long texts are, is counted in the newest cases: in all of them up to some thousands.

The database function ``hybrid_search_context_eng_memories`` has this formula, too, for flows that search from SQL. It
stands in ``alembic/baseline/search.sql`` with the numbers written out, for a migration must not change when this module
does; a change here needs a revision that replaces the function. The suite compares the ranks of both.
"""

from math import log
from uuid import UUID

from sqlalchemy import (
    CTE,
    REAL,
    Boolean,
    ColumnElement,
    Float,
    Select,
    Text,
    bindparam,
    case,
    cast,
    func,
    literal,
    literal_column,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY, REGCONFIG, TSQUERY

from retrieval.tables.columns import SEARCH_CONFIGURATION

LOOKS = 20_000
"""Comparisons of a text and a word, at most, that count the rarity of words."""
SAMPLE = 2_000
"""Newest cases among which rarity is counted, at most."""
MOST_BITS = 11
"""Rarity of a word that one of SAMPLE cases has: the largest that can be counted."""
K1, B = 1.2, 0.75
_EVEN = cast(literal_column("'{.1,.1,.1,.1}'"), ARRAY(REAL))
"""Weights of the labels of words: all alike."""


def query_words() -> ColumnElement[str]:
    """Returns the words of the parameter ``query``, all of them, as Postgres searches for them."""
    return func.plainto_tsquery(cast(literal(SEARCH_CONFIGURATION), REGCONFIG), bindparam("query", type_=Text))


def each_word() -> ColumnElement[str]:
    """Returns those words one by one, as rows."""
    return func.regexp_split_to_table(cast(query_words(), Text), literal_column("' & '"))


def has_words(searched: ColumnElement[object], words: ColumnElement[object]) -> ColumnElement[bool]:
    """Returns the condition that the vector matches the query."""
    return searched.op("@@", return_type=Boolean())(words)


def keywords(searched: Select[UUID, object]) -> CTE:
    """Returns the one row of what keywords are searched by, from ids and search vectors of the cases there are.

    ``words`` matches any word of the query, for a question rarely shares all its words with a case; ``words_N`` those
    whose rarity is N bits, with what they are worth together as ``worth_N``; ``mean_length`` is that of the texts.
    """
    rare, whole = _rarity(searched)
    bits = func.least(func.round(rare.c.bits), _number(MOST_BITS))
    columns: list[ColumnElement[object]] = [_any_of(rare).label("words")]
    for number in range(MOST_BITS + 1):
        alike = bits == _number(number)
        worth = cast(func.sum(rare.c.bits).filter(alike), Float)
        columns += [_any_of(rare, alike).label(f"words_{number}"), worth.label(f"worth_{number}")]
    mean_length = select(whole.c.mean_length).scalar_subquery().label("mean_length")
    return select(*columns, mean_length).cte("keywords").prefix_with("MATERIALIZED")


def _rarity(searched: Select[UUID, object]) -> tuple[CTE, CTE]:
    """Returns each word of the query with its rarity in bits, and how many cases were counted, of which mean length."""
    words = select(each_word().label("text")).distinct().cte("query_words").prefix_with("MATERIALIZED")
    spoken = select(words.c.text, cast(words.c.text, TSQUERY).label("word")).where(words.c.text != literal_column("''"))
    each = spoken.cte("each_word").prefix_with("MATERIALIZED")
    count = select(func.count()).select_from(each).scalar_subquery()
    looked_at = func.least(_number(SAMPLE), _number(LOOKS).op("/")(func.greatest(count, _number(1))))
    newest = searched.order_by(searched.selected_columns.id.desc()).limit(looked_at)
    sample = newest.cte("newest").prefix_with("MATERIALIZED")
    length = func.greatest(func.avg(func.length(sample.c.search_vector)), _number(1))
    size = select(cast(func.count(), Float).label("cases"), cast(length, Float).label("mean_length"))
    whole = size.select_from(sample).cte("whole").prefix_with("MATERIALIZED")
    having = select(func.count()).select_from(sample).where(has_words(sample.c.search_vector, each.c.word))
    share = (having.scalar_subquery() + _number(0.5)) / (whole.c.cases + _number(1))
    bits = (-func.ln(cast(share, Float)) / _number(log(2))).label("bits")
    rare = select(each.c.text, bits).select_from(each.join(whole, true())).cte("rare").prefix_with("MATERIALIZED")
    return rare, whole


def _number(value: float) -> ColumnElement[float]:
    """A constant in the statement's own text, for each parameter costs time."""
    return literal_column(repr(value), Float)


def _any_of(rare: CTE, *only: ColumnElement[bool]) -> ColumnElement[object]:
    together = func.string_agg(rare.c.text, literal_column("' | '"))
    return cast(together.filter(*only) if only else together, TSQUERY)


def matches(vector: ColumnElement[object], of: CTE) -> ColumnElement[bool]:
    """Returns whether a text has some of the words; ``of`` is of ``keywords``."""
    return has_words(vector, of.c.words)


def relevance(vector: ColumnElement[object], of: CTE) -> ColumnElement[float]:
    """Returns how relevant a text is that has some of the words, above 0; NULL of others."""
    ranks = [
        func.coalesce(of.c[f"worth_{number}"] * func.ts_rank(_EVEN, vector, of.c[f"words_{number}"]), _number(0))
        for number in range(MOST_BITS + 1)
    ]
    damped = _number(1 + K1 * (1 - B)) + _number(K1 * B) * func.length(vector) / of.c.mean_length
    return case((matches(vector, of), sum(ranks[1:], ranks[0]) / damped))
