"""Slates that are tried out keep to what is related, too, and the log has the chances of those alone."""

import pytest

from retrieval.retrieve import Reader
from retrieval.search.candidates import CaseSearch, candidates
from tests.retrieval.conftest import EMBEDDER, ask, ids, logged, walls
from tests.writer.conftest import AGENT, Bank
from writer.upkeep.reembed import reembed


async def test_what_is_tried_out_is_related_and_the_chances_are_those_of_what_is(bank: Bank, reader: Reader, user: str):
    related = set(await walls(bank, user))
    tasks = ["translate the release notes into French", "export last month's invoices"]
    strangers = set(await bank.add(user, *({"task": task, "plan": [task]} for task in tasks)))
    await reembed(bank.database, EMBEDDER, bank.profile(user))
    await bank.set_profile(user, explore=1.0)
    served = [ids(await ask(reader, user)) for _ in range(40)]
    assert {case_id for slate in served for case_id in slate} <= related
    chances = {}
    for slate, entry in zip(served, await logged(bank, user), strict=True):
        assert not strangers & set(entry.candidate_ids)
        assert len(entry.scores) == len(entry.candidate_ids) == len(related)
        chances[tuple(slate)] = entry.slate_propensity
    assert len(chances) > 1
    assert sum(chances.values()) <= 1 + 1e-5


async def test_where_nothing_is_related_the_slate_is_empty_for_certain(bank: Bank, reader: Reader, user: str):
    await walls(bank, user)
    await bank.set_profile(user, explore=1.0)
    answers = [await ask(reader, user, "kubectl rollout restart") for _ in range(5)]
    assert [answer.choices for answer in answers] == [[]] * 5
    assert [entry.slate_propensity for entry in await logged(bank, user)] == [pytest.approx(1)] * 5


async def test_a_word_that_a_fifth_of_the_cases_have_is_not_rare_in_a_query_of_thousands_of_words(
    bank: Bank, user: str
):
    tasks = [f"water {'fern' if number % 5 == 0 else 'moss'} {number}" for number in range(40)]
    await bank.add(user, *({"task": task, "plan": ["look"]} for task in tasks))
    await reembed(bank.database, EMBEDDER, bank.profile(user))
    query = " ".join(["fern", *(f"filler{number}" for number in range(2_000))])  # so the newest 10 cases are counted
    (vector,) = await EMBEDDER.embed([query])
    search = CaseSearch(AGENT, query, vector=vector.tolist(), model=EMBEDDER.model)
    async with bank.database.fast(user, bank.profile(user).seen_at) as connection:
        rows = await connection.all(*candidates(search))
    assert {row.shares_rare for row in rows if "fern" in row.task} == {False}
    assert {row.shares_rare for row in rows if "moss" in row.task} == {None}
