"""The log as the gate and training compute with it."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from policy.decide import Policy
from tests.logs import TRUTH
from tests.writer.conftest import AGENT, Bank
from tests.writer.trainings import log, seen
from writer.training.decision_log import read
from writer.training.training_data import target


async def test_the_gate_sees_a_policy_that_would_serve_nothing_as_it_would_serve(bank: Bank, user: str):
    await log(bank, user, seen())
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        entries = await read(connection, user, AGENT)
    modest = Policy("q-1", replace(TRUTH.head, null=np.array([50.0], np.float32)), 1.0)
    empty = [not entry.slate for entry in entries]
    assert any(empty)
    assert target(entries, modest).target_probability.tolist() == empty
