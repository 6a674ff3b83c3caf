"""Words count by how rare they are among the cases, in the exact search and in that of a large profile alike."""

import math
from collections.abc import Sequence
from uuid import UUID

import pytest

from retrieval.search.candidates import CaseSearch, Filters, candidates
from tests.writer.conftest import AGENT, Bank

TASKS = [
    "harpsichord",
    "paint the north wall",
    "paint the south wall",
    "paint the wall of the tower and the wall of the gate and the wall of the barn beside the long road home",
    "repair the roof",
    "repair the gate",
]
LEXEMES = [
    {"harpsichord": 1},
    {"paint": 1, "north": 1, "wall": 1},
    {"paint": 1, "south": 1, "wall": 1},
    {"paint": 1, "wall": 3, "tower": 1, "gate": 1, "barn": 1, "besid": 1, "long": 1, "road": 1, "home": 1},
    {"repair": 1, "roof": 1},
    {"repair": 1, "gate": 1},
]


async def found(bank: Bank, user: str, query: str, *, tags: Sequence[str] = ()) -> list[UUID]:
    """The cases that have a word of the query, the most relevant first."""
    search = CaseSearch(AGENT, query, filters=Filters(tags=tags))
    async with bank.database.fast(user, bank.profile(user).seen_at) as connection:
        rows = await connection.all(*candidates(search))
    ranks = {row.keyword_rank: row.id for row in rows if row.id is not None and row.keyword_rank is not None}
    return [ranks[rank] for rank in sorted(ranks)]


def relevance(words: Sequence[str], text: dict[str, int]) -> float:
    """By the formula, word by word, with whole bits' words ranked together."""
    length = sum(map(len, LEXEMES)) / len(LEXEMES)
    classes: dict[int, list[tuple[float, float]]] = {}
    for word in words:
        having = sum(word in other for other in LEXEMES)
        bits = math.log2((len(LEXEMES) + 1) / (having + 0.5))
        times = sum(1 / n**2 for n in range(1, text.get(word, 0) + 1))
        classes.setdefault(round(bits), []).append((bits, times))
    ranked = (sum(bits for bits, _ in each) * sum(times for _, times in each) / len(each) for each in classes.values())
    return sum(ranked) / (1 + 1.2 * (0.25 + 0.75 * len(text) / length))


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("paint the wall", ["paint", "wall"]),
        ("repair the wall of the gate", ["repair", "wall", "gate"]),
        ("paint the north road", ["paint", "north", "road"]),
        ("paint paint paint a harpsichord", ["paint", "harpsichord"]),
        ("repair what we paint on the barn", ["repair", "paint", "barn"]),
    ],
)
async def test_the_order_is_that_of_the_formula(query: str, words: list[str], bank: Bank, user: str):
    ids = await bank.add(user, *({"task": task, "plan": []} for task in TASKS))
    by_formula = {case_id: relevance(words, text) for case_id, text in zip(ids, LEXEMES, strict=True)}
    having = [case_id for case_id in ids if by_formula[case_id] > 0]
    assert await found(bank, user, query) == sorted(having, key=lambda each: (by_formula[each], each), reverse=True)


async def test_one_rare_word_counts_more_than_several_that_most_cases_have(bank: Bank, user: str):
    common = [{"task": f"paint the long wall {number}", "plan": []} for number in range(20)]
    (rare,) = await bank.add(user, {"task": "tune the harpsichord", "plan": []})
    await bank.add(user, *common)
    assert (await found(bank, user, "paint the long wall behind the harpsichord"))[0] == rare


async def test_how_rare_a_word_is_is_counted_among_the_cases_that_pass_the_filters(bank: Bank, user: str):
    await bank.add(user, *({"task": "tune the harpsichord", "plan": [], "tags": ["other"]} for _ in range(20)))
    rows = [{"task": "tune the harpsichord", "plan": []}, *({"task": "paint a wall", "plan": []} for _ in range(9))]
    (rare, *_) = await bank.add(user, *({**row, "tags": ["this"]} for row in rows))
    assert (await found(bank, user, "paint a harpsichord", tags=["this"]))[0] == rare


@pytest.mark.parametrize(
    "query", ["the of and", "", "it's C:\\path 'quoted' \"words\" & | ! ( :* x\\'", "\u4e2d\u6587 \U0001f600"]
)
async def test_any_query_is_searched_by(query: str, bank: Bank, user: str):
    (same,) = await bank.add(user, {"task": query or "nothing", "plan": []})
    assert await found(bank, user, query) in ([], [same])
