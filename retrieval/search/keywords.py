"""SQL for the relevance of a case to the words of a query, by the rarity of each word among the searched cases.

The formula is BM25 (Robertson, Zaragoza 2009; k1 1.2, b .75) with rarity in whole bits: words with the same number of
bits are ranked together by Postgres's ``ts_rank``, which counts words without taking a text's search vector apart and
is eight times as fast. So repeated words count as in ts_rank, the n-th time 1/n², and not as in BM25.

The rarity of words and the mean length of texts are counted in the newest cases: in all of them up to some thousands.

The database function ``hybrid_search_context_eng_memories`` has the same formula, for n8n flows and others that search
from SQL. It is in ``alembic/baseline/search.sql`` with the numbers written out, because a migration must not change
when this module does; a change here needs a revision that replaces the function. A test compares the ranks of both.
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
"""Largest number of comparisons of a text and a word to count the rarity of a query's words."""
SAMPLE = 2_000
"""Largest number of cases, the newest, in which the rarity of words is counted."""
MOST_BITS = 11
"""Rarity in bits of a word that one of SAMPLE cases has, which is the largest that can be counted."""
RARE_PART = 0.1
"""Largest share of the counted cases that may have a word for the word to be rare."""
FEWEST = 30
"""Least number of cases of which RARE_PART is taken, because in a smaller bank no word would be rare."""
K1, B = 1.2, 0.75
_EVEN = cast(literal_column("'{.1,.1,.1,.1}'"), ARRAY(REAL))
"""Weights of a search vector's four labels: all equal."""


def query_words() -> ColumnElement[str]:
    """Returns the SQL for a tsquery of all words of the parameter ``query``."""
    return func.plainto_tsquery(cast(literal(SEARCH_CONFIGURATION), REGCONFIG), bindparam("query", type_=Text))


def each_word() -> ColumnElement[str]:
    """Returns the SQL for the words of the parameter ``query`` as rows, one word each."""
    return func.regexp_split_to_table(cast(query_words(), Text), literal_column("' & '"))


def has_words(searched: ColumnElement[object], words: ColumnElement[object]) -> ColumnElement[bool]:
    """Returns the condition that the search vector ``searched`` matches the tsquery ``words``."""
    return searched.op("@@", return_type=Boolean())(words)


def in_memory(vector: ColumnElement[object]) -> ColumnElement[object]:
    """Returns the SQL for a copy of a search vector; a long one in the table is unpacked again at each use.

    It is for a MATERIALIZED CTE whose rows are compared with several words.
    """
    return vector.op("||")(literal_column("''::tsvector"))


def keywords(searched: Select[UUID, object]) -> tuple[CTE, CTE]:
    """Returns a CTE of one row with what ``matches`` and ``relevance`` need, and one of the query's words.

    Of the first, the column ``words`` matches any word of the query, because a query rarely shares all its words with
    a case; ``words_N`` matches those whose rarity is N bits, and ``worth_N`` is the sum of their rarities;
    ``mean_length`` is that of the texts. The second has a row for each word, with its ``text``, as a tsquery writes it,
    its rarity in ``bits``, and whether it ``is_rare``.
    """
    rare, whole = _rarity(searched)
    bits = func.least(func.round(rare.c.bits), _number(MOST_BITS))
    columns: list[ColumnElement[object]] = [_any_of(rare).label("words")]
    for number in range(MOST_BITS + 1):
        alike = bits == _number(number)
        worth = cast(func.sum(rare.c.bits).filter(alike), Float)
        columns += [_any_of(rare, alike).label(f"words_{number}"), worth.label(f"worth_{number}")]
    mean_length = select(whole.c.mean_length).scalar_subquery().label("mean_length")
    return select(*columns, mean_length).cte("keywords").prefix_with("MATERIALIZED"), rare


def _rarity(searched: Select[UUID, object]) -> tuple[CTE, CTE]:
    """Returns two CTEs: the query's words with their rarity, and number and mean length of the counted cases."""
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
    counted = select(each.c.text, having.scalar_subquery().label("having")).cte("counted").prefix_with("MATERIALIZED")
    share = (counted.c.having + _number(0.5)) / (whole.c.cases + _number(1))
    bits = (-func.ln(cast(share, Float)) / _number(log(2))).label("bits")
    at_least = func.least(looked_at, _number(FEWEST))
    is_rare = (counted.c.having <= _number(RARE_PART) * func.greatest(whole.c.cases, at_least)).label("is_rare")
    of_words = select(counted.c.text, bits, is_rare).select_from(counted.join(whole, true()))
    return of_words.cte("rare").prefix_with("MATERIALIZED"), whole


def _number(value: float) -> ColumnElement[float]:
    """Returns a constant in the statement's own text, because each parameter costs time."""
    return literal_column(repr(value), Float)


def _any_of(rare: CTE, *only: ColumnElement[bool]) -> ColumnElement[object]:
    together = func.string_agg(rare.c.text, literal_column("' | '"))
    return cast(together.filter(*only) if only else together, TSQUERY)


def matches(vector: ColumnElement[object], of: CTE) -> ColumnElement[bool]:
    """Returns the condition that a search vector has some word of the query; ``of`` is the CTE of ``keywords``."""
    return has_words(vector, of.c.words)


def relevance(vector: ColumnElement[object], of: CTE) -> ColumnElement[float]:
    """Returns the SQL for the relevance of a text to the query, above 0; NULL if the text has no word of the query."""
    ranks = [
        func.coalesce(of.c[f"worth_{number}"] * func.ts_rank(_EVEN, vector, of.c[f"words_{number}"]), _number(0))
        for number in range(MOST_BITS + 1)
    ]
    damped = _number(1 + K1 * (1 - B)) + _number(K1 * B) * func.length(vector) / of.c.mean_length
    return case((matches(vector, of), sum(ranks[1:], ranks[0]) / damped))
