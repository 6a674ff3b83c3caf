"""One finished experiment, which the tests look at from all sides."""

import pytest

from examples.experiment.report import Report
from tests.examples.experiment.riddles import Riddles, run
from tests.service import Service


@pytest.fixture(scope="module")
async def report(service: Service) -> Report:
    return await run(service, Riddles())
