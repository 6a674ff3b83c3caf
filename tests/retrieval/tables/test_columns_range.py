"""What the type of a field lets through is what the column can hold."""

from typing import Annotated

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from app.postgres import EmbeddedPostgres
from app.postgres.pools import dsn
from retrieval.tables.columns import fits
from retrieval.tables.profiles import profiles

REAL = TypeAdapter(Annotated[float, fits(profiles.c.rrf_k)])
WHOLE = TypeAdapter(Annotated[int, fits(profiles.c.llm_tokens_per_day)])
SMALL = TypeAdapter(Annotated[int, fits(profiles.c.k)])
EDGES = [0.0, 1e-45, 7e-46, 1e-46, -1e-46, 1e-320, 3.4e38, 3.5e38, 1e300, 1.0, 0.1]


def passes(adapter: TypeAdapter[float], number: float) -> bool:
    try:
        adapter.validate_python(number)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize("number", EDGES)
async def test_a_real_is_let_through_exactly_when_postgres_takes_it(postgres: EmbeddedPostgres, number: float):
    connection = await asyncpg.connect(dsn(postgres.url("postgres")))
    try:
        await connection.fetchval("SELECT $1::float8::real", number)
        taken = True
    except asyncpg.DataError:
        taken = False
    finally:
        await connection.close()
    assert passes(REAL, number) == taken


@given(st.floats(min_value=0, max_value=1000))
def test_what_is_let_through_survives_as_a_number_of_four_bytes(number: float):
    if passes(REAL, number):
        assert (number == 0) == (abs(number) < 7.1e-46)


@pytest.mark.parametrize(("adapter", "largest"), [(WHOLE, 2**31 - 1), (SMALL, 2**15 - 1)])
def test_a_whole_number_ends_where_its_column_does(adapter: TypeAdapter[float], largest: int):
    assert passes(adapter, largest)
    assert not passes(adapter, largest + 1)
