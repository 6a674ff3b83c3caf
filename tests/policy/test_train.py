"""Training learns what is there to learn and little else, and keeps one user's data from another's head."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from policy.examples import Examples, capped_shares, joined, pooled
from policy.network import CLIP_SD, Head
from policy.train import RIDGES, Plan, train
from policy.weights import pack
from tests.policy.builders import INPUTS, QUICK, TASTE, Toy, logged, start, toy, unhurried


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def flipped(examples: Examples) -> Examples:
    return replace(examples, reward=1 - examples.reward)


def bytes_of(head: Head) -> bytes:
    return pack(head, 1)[0]


def residual(head: Head, bank: Toy) -> np.ndarray:
    """What the head adds to the order, relative to each query's mean: (queries, candidates)."""
    parts = np.stack([head.case_part(inputs).mean(axis=0) for inputs in bank.inputs])
    return parts - parts.mean(axis=1, keepdims=True)


def moved(one: Head, other: Head, bank: Toy) -> float:
    """Root mean square of the difference of two heads."""
    return float(np.sqrt(np.square(residual(one, bank) - residual(other, bank)).mean()))


PROBE = toy(rng(99), 200)


@pytest.mark.parametrize(("hidden", "curved"), [(0, 0), (6, 0), (6, 1)], ids=["straight", "bent", "curved"])
def test_a_toy_bank_is_learned_to_near_the_oracle_from_slate_outcomes(hidden: int, curved: int):
    bank, rows = toy(rng(1), 300, curved=bool(curved)), logged(rng(2), 3_000, curved=bool(curved))
    (head,) = train([rows], Plan(ridge=10.0, steps=150), [3], start(members=2, hidden=hidden))
    before, after, best = bank.value(bank.prior), bank.value(bank.learned(head)), bank.value(bank.worth)
    assert after - before > (0.7 if curved else 0.9) * (best - before)


def test_a_straight_head_cannot_learn_what_is_curved():
    bank, rows = toy(rng(1), 300, curved=True), logged(rng(2), 3_000, curved=True)
    (head,) = train([rows], Plan(ridge=10.0), [3], start(members=2))
    before, after, best = bank.value(bank.prior), bank.value(bank.learned(head)), bank.value(bank.worth)
    assert after - before < 0.3 * (best - before)


def test_what_is_learned_is_what_each_input_is_worth():
    (head,) = train([logged(rng(4), 6_000)], Plan(ridge=1.0), [0], start(members=3))
    weights = head.linear.mean(axis=0) / head.scale
    expected = TASTE - 0.5 * (np.arange(INPUTS) == 2)  # the default's half a unit for the third is taken back
    assert weights == pytest.approx(expected, abs=0.3)


def test_the_trained_head_expects_as_much_reward_as_there_was_and_more_on_easy_queries():
    rows = logged(rng(5), 2_000)
    (head,) = train([rows], Plan(ridge=10.0), [0], start(members=3))
    case = np.stack([head.case_part(inputs).mean(axis=0) for inputs in rows.inputs])
    odds = head.query_part(rows.query).mean(axis=0) + (rows.credit * (rows.prior + case)).sum(axis=1)
    expected = 1 / (1 + np.exp(-odds))
    assert expected.mean() == pytest.approx(rows.reward.mean(), abs=0.03)
    easy = rows.query[:, 0] > 0
    assert expected[easy].mean() == pytest.approx(rows.reward[easy].mean(), abs=0.05)
    assert expected[~easy].mean() == pytest.approx(rows.reward[~easy].mean(), abs=0.05)


@pytest.mark.parametrize("hidden", [0, 3])
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(hidden: int):
    rows, begin = logged(rng(6), 120), start(hidden=hidden)
    first, again, other = (bytes_of(train([rows], QUICK, [seed], begin)[0]) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_rows_of_one_query_are_drawn_together():
    rows = logged(rng(6), 80)
    one_query = replace(rows, group=np.zeros(80, np.int64))
    (head,) = train([one_query], QUICK, [1], start(members=3))
    assert head.linear[1:] == pytest.approx(head.linear[:1].repeat(2, axis=0), abs=1e-5)


def test_the_members_of_an_ensemble_differ():
    (head,) = train([logged(rng(6), 120)], QUICK, [1], start(members=3))
    assert len({member.tobytes() for member in head.linear}) == 3


@pytest.mark.parametrize("hidden", [0, 3])
def test_a_profiles_head_does_not_depend_on_who_else_is_in_the_batch(hidden: int):
    profiles = [logged(rng(seed), size) for seed, size in enumerate((40, 0, 150, 77))]
    begin, seeds = start(hidden=hidden), [5, 6, 7, 8]
    together = train(profiles, QUICK, seeds, begin)
    for profile, seed, head in zip(profiles, seeds, together, strict=True):
        (alone,) = train([profile], QUICK, [seed], begin)
        for name, array in alone.arrays().items():
            assert head.arrays()[name] == pytest.approx(array, abs=1e-5), name
        for one, other in zip(PROBE.learned(alone), PROBE.learned(head), strict=True):
            assert np.argsort(-one).tolist() == np.argsort(-other).tolist()


def test_profiles_come_back_in_their_order_however_they_are_batched():
    profiles = [logged(rng(seed), 30) for seed in range(5)]
    told: list[int] = []
    batched = train(profiles, replace(QUICK, batch=2), range(5), start(), told.append)
    whole = train(profiles, QUICK, range(5), start())
    assert told == [2, 2, 1]
    for one, other in zip(batched, whole, strict=True):
        assert one.linear == pytest.approx(other.linear, abs=1e-5)


@pytest.mark.parametrize("hidden", [0, 3])
def test_one_users_data_cannot_move_another_users_head(hidden: int):
    mine, yours, begin = logged(rng(1), 60), logged(rng(2), 60), start(hidden=hidden)
    for theirs in (flipped(yours), replace(yours, inputs=yours.inputs * 100), logged(rng(3), 60)):
        before, after = (train([mine, other], QUICK, [1, 2], begin) for other in (yours, theirs))
        assert bytes_of(before[0]) == bytes_of(after[0])
        assert bytes_of(before[1]) != bytes_of(after[1])
    before, after = (
        train([mine, other], replace(QUICK, batch=1), [1, 2], begin) for other in (yours, logged(rng(3), 9))
    )
    assert bytes_of(before[0]) == bytes_of(after[0])


def in_torch(head: Head, inputs: np.ndarray) -> np.ndarray:
    """The case part as a torch program, (M, n)."""
    weight = {name: torch.from_numpy(array) for name, array in head.arrays().items()}
    x = torch.clamp((torch.from_numpy(inputs) - weight["centre"]) / weight["scale"], -CLIP_SD, CLIP_SD)
    members = []
    for linear, hidden, bias, output in zip(
        *(weight[n] for n in ("linear", "hidden", "hidden_bias", "output")), strict=True
    ):
        members.append(x @ linear + torch.tanh(x @ hidden + bias) @ output)
    return torch.stack(members).numpy()


@pytest.mark.parametrize("hidden", [0, 4])
def test_numpy_serves_what_torch_computes(hidden: int):
    (head,) = train([logged(rng(7), 300)], QUICK, [1], start(members=3, hidden=hidden))
    inputs = (rng(8).normal(size=(64, INPUTS)) * 4).astype(np.float32)  # some beyond what counts
    assert head.case_part(inputs).any()
    assert head.case_part(inputs) == pytest.approx(in_torch(head, inputs), abs=1e-6)


def begun(hidden: int) -> Head:
    """A head that has something to say already."""
    (head,) = train([logged(rng(9), 400)], QUICK, [1], start(hidden=hidden))
    return head


@pytest.mark.parametrize("hidden", [0, 3])
def test_without_examples_a_profile_keeps_what_training_starts_from(hidden: int):
    for begin in (start(hidden=hidden), begun(hidden)):
        (head,) = train([logged(rng(), 0)], QUICK, [1], begin)
        assert np.array_equal(PROBE.learned(head), PROBE.learned(begin))


def test_nobody_to_train_is_nothing_to_do():
    assert train([], QUICK, [], start()) == []


@pytest.mark.parametrize("hidden", [0, 3])
def test_training_begins_with_what_the_start_computes_whatever_the_units_of_the_profile(hidden: int):
    rows, begin = logged(rng(10), 50), begun(hidden)
    shifted = replace(rows, inputs=rows.inputs * 1.5 + 0.3, query=rows.query - 2)
    (head,) = train([shifted], replace(QUICK, steps=0), [1], begin)
    assert residual(head, PROBE) == pytest.approx(residual(begin, PROBE), abs=1e-4)
    asked = rng(30).uniform(-2, 2, (9, 1)).astype(np.float32)
    assert head.query_part(asked) == pytest.approx(begin.query_part(asked), abs=1e-4)
    assert not np.array_equal(head.centre, begin.centre)
    assert not np.array_equal(head.query_scale, begin.query_scale)


@pytest.mark.parametrize("hidden", [0, 3])
def test_the_harder_the_pull_the_less_training_moves(hidden: int):
    rows, begin = logged(rng(11), 300), start(hidden=hidden)
    plans = [replace(QUICK, ridge=ridge, steps=200) for ridge in (1.0, 30.0, 1_000.0, 100_000.0)]
    distances = [moved(train([rows], plan, [1], begin)[0], begin, PROBE) for plan in plans]
    assert distances == sorted(distances, reverse=True)
    assert distances[0] > 0.5
    assert distances[-1] < 0.01


def test_the_more_decisions_there_are_the_farther_training_moves():
    rows = logged(rng(12), 1_000)
    heads = [train([rows.take(np.arange(size))], Plan(), [1], start())[0] for size in (20, 200, 1_000)]
    distances = [moved(head, start(), PROBE) for head in heads]
    assert distances == sorted(distances)


@pytest.mark.parametrize("hidden", [0, 3])
@pytest.mark.parametrize("reward", [0.0, 0.5, 1.0])
def test_rewards_that_are_all_equal_leave_the_order_nearly_alone(hidden: int, reward: float):
    rows = logged(rng(13), 400)
    (head,) = train([replace(rows, reward=np.full(400, reward, np.float32))], Plan(), [1], start(hidden=hidden))
    assert all(np.isfinite(array).all() for array in head.arrays().values())
    # the default's own opinion is all there is to unlearn: its spread is a half
    assert moved(head, start(hidden=hidden), PROBE) < 0.25


@pytest.mark.parametrize("hidden", [0, 3])
def test_rewards_of_chance_move_the_order_less_than_rewards_that_mean_something(hidden: int):
    rows = logged(rng(14), 1_000)
    rows = replace(rows, prior=np.zeros_like(rows.prior))  # else chance would rightly unlearn the default's opinion
    shuffled = replace(rows, reward=rng(15).permutation(rows.reward))
    real, chance = train([rows, shuffled], Plan(), [1, 1], start(hidden=hidden))
    bank = toy(rng(16), 200)
    assert moved(chance, start(hidden=hidden), bank) < 0.5 * moved(real, start(hidden=hidden), bank)


@pytest.mark.parametrize("hidden", [0, 3])
def test_a_head_leaves_where_it_began_only_when_its_later_decisions_clearly_say_so(hidden: int):
    rows = logged(rng(14), 1_000)
    rows = replace(rows, prior=np.zeros_like(rows.prior))
    shuffled = replace(rows, reward=rng(15).permutation(rows.reward))
    real, chance = train([rows, shuffled], Plan(ridges=RIDGES, steps=100), [1, 1], start(hidden=hidden))
    assert moved(chance, start(hidden=hidden), PROBE) < 1e-5
    assert moved(real, start(hidden=hidden), PROBE) > 0.1


@pytest.mark.parametrize(("without", "declines"), [(0.95, 1.0), (0.05, 0.0)])
def test_memory_that_does_worse_than_none_is_declined_and_memory_that_helps_is_not(without: float, declines: float):
    rows = logged(rng(18), 800)
    rows = replace(rows, query=np.zeros_like(rows.query), reward=(rng(19).random(800) < 0.5).astype(np.float32))
    empty = np.arange(800) % 20 == 0
    reward = np.where(empty, rng(20).random(800) < without, rows.reward).astype(np.float32)
    rows = replace(rows, empty=empty, reward=reward, credit=np.where(empty[:, None], 0, rows.credit))
    (head,) = train([rows], Plan(ridges=RIDGES), [1], start(members=5))
    bank = toy(rng(21), 200)
    gain = head.shown(bank.prior[:, :4].mean(axis=1)) - head.null[:, None]
    assert (gain.mean(axis=0) + gain.std(axis=0) < 0).mean() == pytest.approx(declines, abs=0.02)


def test_a_log_with_too_few_empty_slates_says_nothing_of_them():
    rows = logged(rng(18), 400)
    empty = np.arange(400) < 5
    rows = replace(rows, empty=empty, reward=np.where(empty, 1, rows.reward).astype(np.float32))
    (head,) = train([rows], Plan(), [1], start())
    assert head.null.tolist() == start().null.tolist()


def test_an_input_that_never_varies_does_no_harm():
    rows = logged(rng(17), 200)
    constant = rows.inputs.copy()
    constant[..., 5] = 0.1
    (head,) = train([replace(rows, inputs=constant)], Plan(), [1], start(hidden=3))
    assert all(np.isfinite(array).all() for array in head.arrays().values())
    assert np.abs(head.linear[:, 5]).max() < 1e-3


def test_slates_on_which_nothing_was_used_teach_nothing_about_cases():
    rows = logged(rng(18), 200)
    (head,) = train([replace(rows, credit=np.zeros_like(rows.credit))], Plan(), [1], start())
    assert not head.linear.any()


def test_a_decision_without_weight_teaches_nothing():
    rows, noise = logged(rng(19), 200), flipped(logged(rng(20), 200))
    silent = replace(noise, weight=np.zeros(200, np.float32), inputs=rows.inputs, query=rows.query)
    both = joined([silent, rows])
    changed = replace(both, reward=np.concatenate([1 - silent.reward, rows.reward]))
    one, other = (train([examples], QUICK, [1], start())[0] for examples in (both, changed))
    assert bytes_of(one) == bytes_of(other)


@pytest.mark.parametrize("hidden", [0, 3])
def test_every_place_counts_by_its_credit(hidden: int):
    rows = logged(rng(21), 100)
    used = np.zeros_like(rows.credit)
    used[:, 1] = 1
    noise = rows.inputs.copy()
    noise[:, [0, 2, 3]] = 1e6
    one, other = (
        train([replace(rows, credit=used, inputs=inputs)], QUICK, [1], start(hidden=hidden))[0]
        for inputs in (rows.inputs, noise)
    )
    assert bytes_of(one) == bytes_of(other)


sizes = arrays.arrays(np.float64, st.integers(0, 40), elements=st.integers(0, 10_000).map(float))


@unhurried
@given(sizes, st.floats(0.01, 1))
def test_shares_sum_to_one_and_none_passes_the_cap_that_enough_users_allow(size: np.ndarray, cap: float):
    shares = capped_shares(size, cap)
    users = int((size > 0).sum())
    assert shares.shape == size.shape
    assert shares.sum() == pytest.approx(min(users, 1))
    assert (shares >= 0).all()
    assert not shares[size == 0].any()
    assert shares.max(initial=0) <= max(cap, 1 / max(users, 1)) + 1e-9


@unhurried
@given(sizes, st.floats(0.01, 1))
def test_who_has_more_decisions_has_no_smaller_share(size: np.ndarray, cap: float):
    assert (np.diff(capped_shares(size, cap)[np.argsort(size)]) >= -1e-12).all()


def test_below_the_cap_shares_are_as_the_sizes():
    assert capped_shares(np.array([10.0, 20, 10]), 0.5) == pytest.approx([0.25, 0.5, 0.25])
    assert capped_shares(np.array([60.0, 20, 20]), 0.4) == pytest.approx([0.4, 0.3, 0.3])


def test_a_user_with_several_agents_weighs_as_much_as_their_decisions_together():
    agents = [logged(rng(28), 30), logged(rng(29), 10)]
    together = pooled(agents, 1.0)
    assert together.weight == pytest.approx(joined(agents).weight)


def test_pooled_users_weigh_by_their_capped_shares():
    users = [logged(rng(seed), size) for seed, size in enumerate((600, 200, 0, 200))]
    weight = pooled(users, 0.4).weight
    by_user = np.array([part.sum() for part in np.split(weight, [600, 800, 800])])
    assert by_user / weight.sum() == pytest.approx([0.4, 0.3, 0, 0.3], abs=1e-5)
    assert weight.max() < 2


CROWD = [logged(rng(100 + user), 40) for user in range(19)]
PRIOR_PLAN = Plan(steps=120, ridge=30.0)


def train_prior(users: list[Examples], plan: Plan, seed: int, begin: Head, cap: float = 0.1) -> Head:
    """The shared prior, as the nightly training makes it of one part a user."""
    return train([pooled(users, cap)], plan, [seed], begin)[0] if users else begin


def prior_of(loud: Examples, cap: float = 0.1) -> Head:
    return train_prior([*CROWD, loud], PRIOR_PLAN, 1, start(), cap)


def test_the_shared_prior_learns_what_users_have_in_common():
    bank = toy(rng(22), 200)
    head = train_prior(CROWD, PRIOR_PLAN, 1, start())
    before, after, best = bank.value(bank.prior), bank.value(bank.learned(head)), bank.value(bank.worth)
    assert after - before > 0.7 * (best - before)


def test_a_single_user_cannot_move_the_prior_by_more_than_the_cap_allows():
    loud = logged(rng(23), 4_000)
    capped, uncapped = (moved(prior_of(loud, cap), prior_of(flipped(loud), cap), PROBE) for cap in (0.1, 1.0))
    everybody = [*CROWD, loud]
    upset = train_prior([flipped(user) for user in everybody], PRIOR_PLAN, 1, start())
    all_together = moved(train_prior(everybody, PRIOR_PLAN, 1, start()), upset, PROBE)
    assert capped < 3 * 0.1 * all_together
    assert capped < 0.3 * uncapped


def test_a_flood_from_one_user_does_not_make_the_prior_trust_the_few_rows_of_the_others_more():
    few, many = logged(rng(24), 40), logged(rng(24), 20_000)
    quiet, flood = (
        train_prior([*CROWD, replace(rows, reward=np.full(len(rows), 0.5, np.float32))], PRIOR_PLAN, 1, start())
        for rows in (few, many)
    )
    assert moved(flood, start(), PROBE) < 1.2 * moved(quiet, start(), PROBE)


def test_a_flood_from_one_user_does_not_set_the_units_in_which_the_others_are_seen():
    odd = logged(rng(25), 20_000)
    head = prior_of(replace(odd, inputs=odd.inputs * 0.001 + 10))
    assert np.abs(head.centre).max() < 0.1 * 10 + 0.5


def test_a_prior_of_nobody_is_what_it_began_with():
    for nobody in ([], [logged(rng(), 0)] * 12):
        head = train_prior(nobody, QUICK, 1, start(hidden=2))
        assert np.array_equal(PROBE.learned(head), PROBE.learned(start(hidden=2)))


def test_a_users_head_starts_from_the_prior_and_leaves_it_as_decisions_come():
    prior = train_prior(CROWD, PRIOR_PLAN, 1, start())
    other = flipped(logged(rng(26), 2_000))
    near, far = (train([other.take(np.arange(size))], Plan(), [1], prior)[0] for size in (10, 2_000))
    bank = toy(rng(27), 200)
    assert moved(near, prior, bank) < 0.2 * moved(far, prior, bank)
    assert bank.value(bank.learned(near)) > bank.value(bank.prior) > bank.value(bank.learned(far))
