"""What is read as bytes is what is stored."""

import numpy as np
import pytest
from sqlalchemy import ARRAY, Integer, bindparam, cast, func, select

from app.postgres.pools import service_database
from retrieval.database.rows import integers


@pytest.mark.parametrize("stored", [[], [7], [-(2**31), 0, 2**31 - 1, 5, 5]])
async def test_an_array_comes_back_from_its_bytes(stored: list[int], database_url: str):
    array = cast(bindparam("stored", stored, type_=ARRAY(Integer)), ARRAY(Integer))
    async with service_database(database_url) as database, database.as_worker() as connection:
        sent = (await connection.execute(select(func.array_send(array)))).scalar_one()
    assert integers(sent).tolist() == stored
    assert integers(sent).dtype == np.int32
