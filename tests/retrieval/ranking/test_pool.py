"""The features of a retrieval: logged as they are, to the bit; and one place for each plan."""

from datetime import UTC, datetime

import numpy as np
import pytest

from policy import features
from retrieval.ranking.pool import groups, pool_of
from retrieval.retrieve import Reader
from retrieval.search.candidates import CaseSearch, candidates
from tests.retrieval.conftest import EMBEDDER, WALLS, ask, logged, walls
from tests.writer.conftest import AGENT, Bank
from writer.rewards.feedback import Feedback, give_feedback
from writer.upkeep.reembed import reembed


async def test_the_logged_features_are_those_of_the_rows_to_the_bit(bank: Bank, reader: Reader, user: str):
    await walls(bank, user)
    await bank.add(user, *({"task": f"clean the brush, paint wall {n}", "moves": [1, 2, n]} for n in range(3)))
    await reembed(bank.database, EMBEDDER, bank.profile(user))
    first = await ask(reader, user)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await give_feedback(connection, user, "t", Feedback(0.75, "user", decision_id=first.retrieval_id))
    await ask(reader, user, "paint the upper wall")
    entry = (await logged(bank, user))[-1]
    (vector,) = await EMBEDDER.embed([entry.query])
    search = CaseSearch(AGENT, entry.query, vector.tolist(), EMBEDDER.model)
    assert len(entry.candidate_ids) == len(WALLS) + 3
    async with bank.database.fast(user, datetime.now(UTC)) as connection:
        rows = await connection.all(*candidates(search))
    again = pool_of(rows, [], None)
    assert entry.candidate_ids == again.ids
    assert entry.candidate_groups == again.group.tolist()
    assert entry.candidate_sources == again.source.tolist()
    np.testing.assert_array_equal(features.unpacked(entry.features), again.features)


@pytest.mark.parametrize(
    ("plans", "failed", "expected"),
    [
        ("abcd", "    ", [0, 1, 2, 3]),
        ("aaaa", "    ", [0, 0, 0, 0]),
        ("abab", "    ", [0, 1, 0, 1]),
        ("aaaa", " x x", [0, 1, 0, 1]),  # a failure and a success of one plan are two stories
        ("", "", []),
    ],
)
def test_candidates_of_one_plan_and_fate_are_one_group(plans: str, failed: str, expected: list[int]):
    same = np.array([[float(one == other) for other in plans] for one in plans], dtype=np.float32)
    fate = np.array([each == "x" for each in failed], dtype=np.bool_)
    assert groups(same.reshape(len(plans), len(plans)), fate).tolist() == expected
