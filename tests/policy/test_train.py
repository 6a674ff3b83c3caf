"""Training learns what is there to learn and little else, and keeps one user's data from another's head."""

from dataclasses import replace

import numpy as np
import pytest

from policy.examples import Examples
from policy.network import Head
from policy.train import train
from policy.weights import pack
from tests.policy.builders import INPUTS, ONE_RIDGE, TASTE, logged, start, toy
from tests.policy.trained import flipped, rng


def bytes_of(head: Head) -> bytes:
    return pack(head, 1)[0]


def test_a_toy_bank_is_learned_to_near_the_oracle_from_slate_outcomes():
    bank, rows = toy(rng(1), 300), logged(rng(2), 3_000)
    (head,) = train([rows], [3], start(members=2), (10.0,))
    before, after, best = bank.value(bank.prior), bank.value(bank.learned(head)), bank.value(bank.worth)
    assert after - before > 0.9 * (best - before)


def test_what_is_learned_is_what_each_input_is_worth():
    (head,) = train([logged(rng(4), 6_000)], [0], start(members=3), (1.0,))
    weights = head.linear.mean(axis=0) / head.scale
    expected = TASTE - 0.5 * (np.arange(INPUTS) == 2)  # the default's half a unit for the third is taken back
    assert weights == pytest.approx(expected, abs=0.3)


def test_the_trained_head_expects_as_much_reward_as_there_was_and_more_on_easy_queries():
    rows = logged(rng(5), 2_000)
    (head,) = train([rows], [0], start(members=3), (10.0,))
    case = np.stack([head.case_part(inputs).mean(axis=0) for inputs in rows.inputs])
    odds = head.query_part(rows.query).mean(axis=0) + (rows.credit * (rows.prior + case)).sum(axis=1)
    expected = 1 / (1 + np.exp(-odds))
    assert expected.mean() == pytest.approx(rows.reward.mean(), abs=0.03)
    easy = rows.query[:, 0] > 0
    assert expected[easy].mean() == pytest.approx(rows.reward[easy].mean(), abs=0.05)
    assert expected[~easy].mean() == pytest.approx(rows.reward[~easy].mean(), abs=0.05)


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others():
    rows, begin = logged(rng(6), 120), start()
    first, again, other = (bytes_of(train([rows], [seed], begin, ONE_RIDGE)[0]) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_rows_of_one_query_are_drawn_together():
    rows = logged(rng(6), 80)
    one_query = replace(rows, group=np.zeros(80, np.int64))
    (head,) = train([one_query], [1], start(members=3), ONE_RIDGE)
    assert head.linear[1:] == pytest.approx(head.linear[:1].repeat(2, axis=0), abs=1e-5)


def test_the_members_of_an_ensemble_differ():
    (head,) = train([logged(rng(6), 120)], [1], start(members=3), ONE_RIDGE)
    assert len({member.tobytes() for member in head.linear}) == 3


def test_a_profiles_head_does_not_depend_on_who_else_is_trained():
    profiles = [logged(rng(seed), size) for seed, size in enumerate((40, 0, 150, 77))]
    begin, seeds = start(), [5, 6, 7, 8]
    together = train(profiles, seeds, begin, ONE_RIDGE)
    for profile, seed, head in zip(profiles, seeds, together, strict=True):
        (alone,) = train([profile], [seed], begin, ONE_RIDGE)
        assert bytes_of(alone) == bytes_of(head)


def test_each_profile_that_is_done_is_told():
    told: list[int] = []
    train([logged(rng(seed), 30) for seed in range(3)], range(3), start(), ONE_RIDGE, told.append)
    assert told == [1, 1, 1]


def test_one_users_data_cannot_move_another_users_head():
    mine, yours, begin = logged(rng(1), 60), logged(rng(2), 60), start()
    for theirs in (flipped(yours), replace(yours, inputs=yours.inputs * 100), logged(rng(3), 9)):
        before, after = (train([mine, other], [1, 2], begin, ONE_RIDGE) for other in (yours, theirs))
        assert bytes_of(before[0]) == bytes_of(after[0])
        assert bytes_of(before[1]) != bytes_of(after[1])


def test_an_input_that_never_varies_does_no_harm():
    rows = logged(rng(17), 200)
    constant = rows.inputs.copy()
    constant[..., 5] = 0.1
    (head,) = train([replace(rows, inputs=constant)], [1], start(), ONE_RIDGE)
    assert all(np.isfinite(array).all() for array in head.arrays().values())
    assert np.abs(head.linear[:, 5]).max() < 1e-3


def test_slates_on_which_nothing_was_used_teach_nothing_about_cases():
    rows = logged(rng(18), 200)
    (head,) = train([replace(rows, credit=np.zeros_like(rows.credit))], [1], start(), ONE_RIDGE)
    assert not head.linear.any()


def test_a_decision_without_weight_teaches_nothing():
    rows, noise = logged(rng(19), 200), flipped(logged(rng(20), 200))
    silent = replace(noise, weight=np.zeros(200, np.float32), inputs=rows.inputs, query=rows.query)
    columns = {name: (getattr(silent, name), getattr(rows, name)) for name in Examples.__slots__}
    both = Examples(**{name: np.concatenate(parts) for name, parts in columns.items()})
    changed = replace(both, reward=np.concatenate([1 - silent.reward, rows.reward]))
    one, other = (train([examples], [1], start(), ONE_RIDGE)[0] for examples in (both, changed))
    assert bytes_of(one) == bytes_of(other)


def test_every_place_counts_by_its_credit():
    rows = logged(rng(21), 100)
    used = np.zeros_like(rows.credit)
    used[:, 1] = 1
    noise = rows.inputs.copy()
    noise[:, [0, 2, 3]] = 1e6
    one, other = (
        train([replace(rows, credit=used, inputs=inputs)], [1], start(), ONE_RIDGE)[0]
        for inputs in (rows.inputs, noise)
    )
    assert bytes_of(one) == bytes_of(other)
