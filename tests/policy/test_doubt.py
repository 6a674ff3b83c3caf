"""Where it is in doubt whether telling helps: failures only, or nothing that is expected to be rewarded."""

import numpy as np
import pytest

from policy import features
from policy.decide import DEFAULT, Budget, Trial, decide
from policy.doubt import in_doubt
from policy.explore import DOUBTED_SHARE, NULL_SHARE
from policy.slate import field_of
from tests.policy.builders import pool


def bank(*, failed: bool, reward: float, near: tuple[float, float] = (0.0, 0.0)) -> features.Features:
    """Candidates that all failed or all did not, with a record of (count, reward) on queries like this one."""
    seen = pool(np.random.default_rng(1), 6)
    own = {"failed": failed, "reward": reward, "usual_reward": np.nan, "near_count": near[0], "near_reward": near[1]}
    for name, value in own.items():
        seen[:, features.COLUMN[name]] = value
    return seen


def chance_of_nothing(seen: features.Features, budget: float = 0.05) -> float:
    everyone = np.arange(len(seen), dtype=np.int16)
    field = field_of(seen, everyone, everyone, None)
    return decide(seen, field, 4, Trial({DEFAULT: None}, Budget(budget, 0, 0), 1)).lottery.chance(())


def test_failures_only_are_in_doubt_and_successes_are_not():
    assert in_doubt(bank(failed=True, reward=0.0), (0, 1))
    assert not in_doubt(bank(failed=False, reward=1.0), (0, 1))


def test_a_success_of_which_nothing_is_known_is_not_in_doubt():
    assert not in_doubt(bank(failed=False, reward=np.nan), (0,))


def test_successes_whose_reuse_went_wrong_are_in_doubt():
    assert in_doubt(bank(failed=False, reward=1.0, near=(5.0, 0.0)), (0, 1, 2))


def test_one_trusted_case_is_enough():
    seen = bank(failed=True, reward=0.0)
    seen[2, features.COLUMN["failed"]], seen[2, features.COLUMN["reward"]] = 0, 1
    assert not in_doubt(seen, (0, 2))


def test_a_slate_in_doubt_is_left_empty_more_often_by_a_known_chance():
    extra = DOUBTED_SHARE * 0.05
    assert chance_of_nothing(bank(failed=False, reward=1.0)) == pytest.approx(0.05 * NULL_SHARE)
    assert chance_of_nothing(bank(failed=True, reward=0.0)) == pytest.approx(extra + (1 - extra) * 0.05 * NULL_SHARE)


def test_who_tries_nothing_out_leaves_nothing_empty():
    assert chance_of_nothing(bank(failed=True, reward=0.0), 0.0) == 0
