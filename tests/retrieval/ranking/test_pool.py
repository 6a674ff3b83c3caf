"""The features of a retrieval: logged as they are, to the bit."""

from datetime import UTC, datetime, timedelta

import numpy as np

from policy import features
from retrieval.ranking.pool import Query, pool_of
from retrieval.ranking.tool_counts import ToolVectors, tool_counts, words_of
from retrieval.retrieve import Reader
from retrieval.search.candidates import Search, candidates
from retrieval.search.reuse_history import reuse_history
from tests.retrieval.conftest import EMBEDDER, WALLS, ask, logged, walls
from tests.writer.conftest import AGENT, Bank
from writer.rewards.feedback import Feedback, give_feedback
from writer.upkeep.reembed import reembed

DAYS_AGO = datetime.now(UTC) - timedelta(days=3.3)


async def test_the_logged_features_are_those_of_the_rows_to_the_bit(bank: Bank, reader: Reader, user: str):
    tools = ["open_paint", "paint_wall", "clean_brush"]
    await walls(bank, user)
    await bank.add(
        user,
        *({"task": f"clean the brush, paint wall {n}", "effects": tools[n:], "created_at": DAYS_AGO} for n in range(3)),
    )
    await reembed(bank.database, EMBEDDER, bank.profile(user))
    first = await ask(reader, user)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        await give_feedback(connection, user, "t", Feedback(0.75, "user", decision_id=first.retrieval_id))
    await ask(reader, user, "paint the upper wall")
    entry = (await logged(bank, user))[-1]
    search = Search(AGENT, entry.query, entry.query_vector, entry.query_model)
    assert len(entry.candidate_ids) == len(WALLS) + len(tools)
    async with bank.database.fast(user, datetime.now(UTC)) as connection:
        rows = await connection.all(*candidates(search))
        uses = await connection.all(*reuse_history(search))
    assert len(uses) == 4
    names = ToolVectors()
    done = tool_counts([*rows, *uses])
    names.want(done)
    assert set(names.wanted()) == set(tools)
    vectors = await EMBEDDER.embed([words_of(name) for name in tools])
    names.learn(dict(zip(tools, vectors, strict=True)))
    again = pool_of(rows, uses, done, Query(entry.query, np.array(entry.query_vector, dtype=np.float32)), names)
    assert entry.candidate_ids == again.ids
    assert entry.candidate_groups == again.group.tolist()
    assert entry.candidate_sources == again.source.tolist()
    seen = features.unpacked(entry.features)
    fresh = [features.COLUMN[name] for name in ("idle_days",)]  # rewarded a moment ago, so it is another moment now
    keep = [column for column in range(len(features.NAMES)) if column not in fresh]
    np.testing.assert_array_equal(seen[:, keep], again.features[:, keep])
    np.testing.assert_allclose(seen[:, fresh], again.features[:, fresh], atol=1e-2)
