"""Scratch databases for the operator: one with the demo's budget, one with steps to spare."""

from collections.abc import AsyncIterator

import pytest

from app.demo.operator.operator import STEP_BUDGET
from app.demo.operator.scratch import Scratch, scratch_database
from app.postgres import EmbeddedPostgres


@pytest.fixture(scope="module")
async def scratch(postgres: EmbeddedPostgres) -> AsyncIterator[Scratch]:
    async with scratch_database(postgres.url("postgres"), budget=STEP_BUDGET) as scratch:
        yield scratch


@pytest.fixture(scope="module")
async def patient(postgres: EmbeddedPostgres) -> AsyncIterator[Scratch]:
    async with scratch_database(postgres.url("postgres"), budget=1000) as scratch:
        yield scratch
