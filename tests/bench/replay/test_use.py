"""The curves of use: outcomes reach the records of the cases that were followed, and earned rewards alone teach."""

import numpy as np
import pytest

from bench.replay import tau_folds, use
from bench.replay.tau_folds import HELPS, PLAN, WARM, Domain
from bench.replay.use import BY_LOT, EARNED, Served
from policy.features import USUAL_REWARD, column


def served(domain: Domain) -> tuple[Served, list[int]]:
    """Returns the bank of a warm fold, and the runs that may be asked."""
    fold = next(fold for fold in tau_folds.folds(domain, 0) if fold.mode == WARM)
    return Served(domain, fold), np.setdiff1d(fold.bank, fold.queries).tolist()


def test_a_decision_is_shared_once_and_most_of_it_goes_to_the_case_that_was_followed(domain: Domain):
    bank, (query, *_) = served(domain)
    followed = bank.slate(query)[0]
    bank.decide(query, EARNED, np.random.default_rng(0))
    assert bank.count.sum() == pytest.approx(1)
    assert bank.count.argmax() == followed
    assert 0 <= bank.reward.sum() <= 1 + 1e-6


def test_the_next_slate_is_ranked_with_what_the_decisions_before_it_earned(domain: Domain):
    bank, (query, *_) = served(domain)
    followed = int(bank.slate(query)[0])
    bank.count[followed] = 50
    pool, ranked = bank.ranked(query)
    records = dict(zip(pool.tolist(), column(ranked, "record").tolist(), strict=True))
    assert records.pop(followed) < 0.1
    assert [*records.values()] == pytest.approx([USUAL_REWARD] * len(records), abs=1e-3)


def test_rewards_by_lot_do_not_ask_how_much_a_case_helped(domain: Domain):
    rate = {}
    for rewards in (EARNED, BY_LOT):
        bank, queries = served(domain)
        random = np.random.default_rng(0)
        helps = [HELPS[PLAN](domain, query, int(bank.slate(query)[0])) for query in queries]
        for query in queries * 3:
            bank.decide(query, rewards, random)
        rate[rewards] = bank.reward.sum() / bank.count.sum()
    assert rate[EARNED] == pytest.approx(np.mean(helps), abs=0.15)
    assert rate[BY_LOT] == pytest.approx(0.5, abs=0.15)


def test_each_cell_has_a_curve_for_either_kind_of_reward(domain: Domain):
    curves = use.curves({"retail": domain}, (0, 20))
    assert {(curve.name, curve.rewards) for curve in curves} == {
        (f"retail {mode}", rewards) for mode in ("cold", "warm") for rewards in (EARNED, BY_LOT)
    }
    assert all(curve.reached.shape[0] == 2 for curve in curves)
    assert len(use.aims(curves)) == len(curves)
