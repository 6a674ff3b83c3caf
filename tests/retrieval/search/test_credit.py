"""The credit rule in SQL, on the real Postgres, beside its twin in numpy."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import REAL, Boolean, Integer, column, select, values
from sqlalchemy import cast as sql_cast

from app.postgres.pools import engine_of
from policy.examples import shared_credit as by_policy
from retrieval.search.credit import shared_credit

Place = tuple[bool | None, float | None]
"""Whether the backend said that it used it, and how well the run agrees with it; None: nobody knows."""
Slate = list[Place]

agreed = st.none() | st.floats(0, 1, width=32)
one_for_all = st.integers(1, 5).flatmap(
    lambda size: st.lists(st.tuples(st.booleans(), agreed), min_size=size, max_size=size)
)
slates = one_for_all | st.lists(st.tuples(st.none(), agreed), min_size=1, max_size=5)


async def in_sql(database_url: str, log: list[Slate]) -> list[list[float]]:
    rows = [(number, place, *known) for number, slate in enumerate(log) for place, known in enumerate(slate)]
    columns = (column("decision", Integer), column("place", Integer), column("used", Boolean), column("agreed", REAL))
    table = values(*columns, name="slots").data(rows)
    share = shared_credit(sql_cast(table.c.used, Boolean), sql_cast(table.c.agreed, REAL), [table.c.decision])
    engine = engine_of(database_url)
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
        used, said = np.array([[place[0] is True for place in slate]]), slate[0][0] is not None
        known = np.array([[np.nan if place[1] is None else place[1] for place in slate]])
        expected = by_policy(np.ones_like(used), used, np.array([said]), known)
        assert shares == pytest.approx(expected[0].tolist())
        assert sum(shares) == pytest.approx(0 if said and not used.any() else 1)
