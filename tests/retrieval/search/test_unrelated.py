"""Slates that are tried out keep to what is related, too, and the log has the chances of those alone."""

import pytest

from retrieval.retrieve import Reader
from tests.retrieval.conftest import EMBEDDER, ask, ids, logged, walls
from tests.writer.conftest import Bank
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
