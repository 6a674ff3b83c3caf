"""Statements of the fast path: compiled once, with their parameters by name."""

from datetime import UTC, datetime

import pytest
from sqlalchemy import Integer, bindparam, literal, select

from app.postgres.pools import service_database
from retrieval.database.fast_path import FastStatement
from retrieval.database.parameters import may_enter

NUMBERS: FastStatement[int] = FastStatement(
    select(bindparam("second", type_=Integer).label("second"), literal(7).label("seven")).where(
        bindparam("first", type_=Integer) == bindparam("first", type_=Integer), may_enter()
    )
)
WHO = {"user_sub": "ada", "authorised_at": datetime.now(UTC)}


def test_arguments_come_in_the_order_of_the_statement_with_its_constants():
    assert NUMBERS.arguments({"first": 1, "second": 2, **WHO}) == [2, 7, 1, *WHO.values()]


def test_a_parameter_that_is_not_given_is_an_error_and_not_null():
    with pytest.raises(KeyError, match="second"):
        NUMBERS.arguments({"first": 1, **WHO})


async def test_a_row_has_its_columns_as_attributes_and_a_value_is_the_first_of_them(database_url: str):
    async with service_database(database_url) as database, database.fast("ada", datetime.now(UTC)) as connection:
        (row,) = await connection.all(NUMBERS, {"first": 1, "second": 2})
        assert (row.second, row.seven) == (2, 7)
        assert await connection.value(NUMBERS, {"first": 1, "second": 3}) == 3
        with pytest.raises(KeyError):
            _ = row.third
