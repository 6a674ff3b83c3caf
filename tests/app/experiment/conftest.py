"""One finished experiment, which the tests look at from all sides."""

import pytest

from app.experiment.report import Report
from tests.app.conftest import Service
from tests.app.experiment.riddles import Riddles, run


@pytest.fixture(scope="module")
async def report(service: Service) -> Report:
    return await run(service, Riddles())
