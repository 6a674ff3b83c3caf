"""The credit rule in SQL, on the real Postgres, beside its twin in numpy."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Boolean, Integer, column, select, values
from sqlalchemy import cast as sql_cast
from sqlalchemy.ext.asyncio import create_async_engine

from policy.examples import shared_credit as by_policy
from retrieval.credit import shared_credit

Slate = list[bool | None]
"""Of each place, whether the backend said that it used it; None: it did not say."""

one_for_all = st.integers(1, 5).flatmap(lambda size: st.lists(st.booleans(), min_size=size, max_size=size))
slates = one_for_all | st.integers(1, 5).map(lambda size: [None] * size)


async def in_sql(database_url: str, log: list[Slate]) -> list[list[float]]:
    rows = [(number, place, used) for number, slate in enumerate(log) for place, used in enumerate(slate)]
    slots = values(column("decision", Integer), column("place", Integer), column("used", Boolean), name="slots")
    table = slots.data(rows)
    share = shared_credit(sql_cast(table.c.used, Boolean), [table.c.decision])
    engine = create_async_engine(database_url)
    async with engine.connect() as connection:
        found = (await connection.execute(select(table.c.decision, table.c.place, share))).all()
    await engine.dispose()
    shares = {(decision, place): value for decision, place, value in found}
    return [[shares[number, place] for place in range(len(slate))] for number, slate in enumerate(log)]


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(log=st.lists(slates, min_size=1, max_size=6))
async def test_both_twins_give_the_same_shares_which_sum_to_one_or_to_nothing_where_all_was_left_unused(
    database_url: str, log: list[Slate]
):
    for slate, shares in zip(log, await in_sql(database_url, log), strict=True):
        used = np.array([[each is True for each in slate]])
        expected = by_policy(np.ones_like(used), used, np.array([slate[0] is not None]))
        assert shares == pytest.approx(expected[0].tolist())
        assert sum(shares) == pytest.approx(0 if slate[0] is not None and not any(slate) else 1)
