"""The world of bank customers: what it says of itself is so."""

import pytest

from bench.learning.reuse import Stage
from tests.bench.learning.conftest import TINY


def test_no_question_of_the_stream_or_the_test_is_in_the_bank(reuse: Stage):
    bank = list(reuse.world.bank.texts)
    assert len(bank) == TINY.cases
    assert not set(bank) & set(reuse.world.stream.texts)
    assert reuse.world.bank.wrong.mean() == pytest.approx(0.3)
