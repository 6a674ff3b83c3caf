"""What is explored: one slate where nothing is, and else the chance of every place."""

import numpy as np
import pytest

from policy.slate import DEPTH
from retrieval.retrieve import Reader
from tests.retrieval.conftest import ask, ids, logged, slates, walls
from tests.writer.conftest import Bank


async def test_where_nothing_is_explored_there_is_one_slate(bank: Bank, reader: Reader, user: str):
    await walls(bank, user)
    found = [await ask(reader, user) for _ in range(20)]
    assert {tuple(ids(slate)) for slate in found} == {tuple(ids(found[0]))}
    assert {choice.propensity for slate in found for choice in slate.choices} == {1}
    assert {entry.slate_propensity for entry in await logged(bank, user)} == {1}


async def test_exploration_stays_near_the_top_and_logs_the_chance_of_every_place(bank: Bank, reader: Reader, user: str):
    await walls(bank, user)
    plain = ids(await ask(reader, user))
    await bank.set_profile(user, explore=1.0)
    answers = {slate.retrieval_id: slate for slate in [await ask(reader, user) for _ in range(120)]}
    slots = await slates(bank, user)
    drawn = set()
    for entry in (await logged(bank, user))[1:]:
        served = [slot.case_id for slot in slots[entry.id]]
        top = [entry.candidate_ids[index] for index in np.argsort(-np.array(entry.scores), kind="stable")[:DEPTH]]
        assert set(served) <= set(top)
        assert served in ([], [*plain[:-1], *served[-1:]])
        assert all(0 < slot.propensity <= 1 for slot in slots[entry.id])
        assert 0 < entry.slate_propensity <= 1
        choices = answers[entry.id].choices
        assert [choice.propensity for choice in choices] == pytest.approx([slot.propensity for slot in slots[entry.id]])
        tried = "; on a slate that was tried out"
        assert {choice.why.endswith(tried) for choice in choices} <= {served != plain}
        drawn.add((tuple(served), round(entry.slate_propensity, 6)))
    assert len(drawn) > 3
    assert len({served for served, _ in drawn}) == len(drawn)  # one slate, one chance
    assert () in {served for served, _ in drawn}
    assert sum(chance for _, chance in drawn) == pytest.approx(1, abs=0.2)  # the rarest may not have come up
    assert sum(chance for _, chance in drawn) <= 1 + 1e-5


async def test_a_share_of_a_reuse_too_small_to_be_told_is_not(bank: Bank, reader: Reader, user: str):
    words = {"task": "paint the wall", "search_text": "paint the wall"}
    await bank.add(user, {**words, "reuse_count": 0.01, "reuse_reward": 0.01}, {**words, "reuse_count": 1.0})
    said = [choice.why for choice in (await ask(reader, user)).choices]
    assert sorted("reuses rewarded" in why for why in said) == [False, True]
