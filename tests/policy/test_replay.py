import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from policy.agreement import looked_up
from policy.fit import fit_of
from policy.history import UNPROVEN_TRUST, History
from policy.orders import ORDERS, START
from policy.replay import CHOICE, ERRORS, Replay, comparison_of, grades, replay, unlike_similarity
from policy.weights import WeightsCorrupt, pack_fit, unpack_fit
from tests.policy.banks import KINDS, history, shop, terms


def shares(found: Replay) -> dict[str, float]:
    return {name: tally.first for name, tally in found.tallies.items()}


def test_in_a_shop_where_names_mislead_telling_words_win_and_the_choice_is_near_the_best():
    found = shares(replay(history(shop(120))))
    assert found["telling"] > found["words"] + 0.1
    assert found[CHOICE] >= max(found[name] for name in ORDERS) - 0.05
    assert found[CHOICE] > 0.9


def test_an_order_sees_only_what_was_there_before():
    runs = shop(60)
    whole, early = (grades(bank, comparison_of(bank)) for bank in (history(runs), history(runs[:30])))
    for name in ("first", "worth"):
        assert np.array_equal(getattr(whole, name)[..., :30], getattr(early, name))
    assert np.array_equal(whole.chosen[:31], early.chosen)


def test_a_question_sees_a_run_before_the_repeat_of_it_that_comes_later_and_the_repeat_from_its_time_on():
    runs = [("water the roses", "can"), ("water the roses", "hose"), *[("hello", "wave")] * 3]
    newest = np.arange(5) * 3600.0
    newest[0] = 2.5 * 3600
    recent = comparison_of(replace(history(runs), newest=newest)).near["recent"]
    since = np.expm1(-recent)
    assert since[1, :1] == pytest.approx([0])
    assert since[2, :2] == pytest.approx([1, 0])  # the repeat is yet to come
    assert since[3, :3] == pytest.approx([0, 2, 1])
    assert since[4, :4] == pytest.approx([1, 3, 2, 0])


@pytest.mark.parametrize(("repeated_at", "expected"), [(0.0, 0), (1.5, 1), (2.5, 0)])
def test_of_runs_with_equal_words_the_one_that_was_repeated_last_stands_first(repeated_at: float, expected: int):
    bank = history([("water the roses", plan) for plan in ("can", "hose", "can")])
    bank = replace(bank, newest=np.array([repeated_at, 1, 2]) * 3600)
    assert grades(bank, comparison_of(bank)).first[list(ORDERS).index("words"), 2] == expected


def test_what_was_known_before_a_repeat_ranks_the_runs_before_it():
    runs = shop(60)
    plain = history(runs)
    late = replace(plain, newest=np.where(np.arange(60) % 3 > 0, plain.times, plain.times[40] + 1))
    whole, without = (grades(bank, comparison_of(bank)) for bank in (late, plain))
    assert np.array_equal(whole.first[:, :41], without.first[:, :41])
    assert not np.array_equal(comparison_of(late).near["recent"][41:], comparison_of(plain).near["recent"][41:])


def test_with_plans_shuffled_no_order_is_better_than_chance():
    runs = shop(200)
    plans = [plan for _, plan in runs]
    np.random.default_rng(1).shuffle(plans)
    found = shares(replay(history([(task, plan) for (task, _), plan in zip(runs, plans, strict=True)])))
    assert max(found.values()) < 0.45  # four kinds


def test_where_meaning_alone_tells_kinds_apart_meaning_is_learned():
    rng = np.random.default_rng(0)
    kinds = rng.integers(4, size=120)
    vectors = np.eye(4, dtype=np.float32)[kinds]
    runs = [(f"word{rng.integers(1000)} and word{rng.integers(1000)}", list(KINDS.values())[kind]) for kind in kinds]
    found = replay(history(runs, vectors=vectors))
    assert shares(found)[CHOICE] > 0.9
    assert shares(found)["words"] < 0.6


UNLIKE = [("refund the lamp", "refund"), ("where is my parcel", "track"), ("new address please", "move"), ("hi", "ask")]
"""Four runs, and so six pairs, that share neither a word nor a move."""


def near(similarities: list[list[float]]) -> np.ndarray:
    """Returns vectors of length 1 with these similarities."""
    return np.linalg.cholesky(np.array(similarities)).astype(np.float32)


def unlike(runs: list[tuple[str, str]], vectors: np.ndarray) -> float | None:
    return unlike_similarity(comparison_of(history(runs, vectors=vectors)))


def test_the_similarity_of_unlike_runs_is_their_mean_and_more_the_more_it_varies():
    even = [[1.0 if row == other else 0.3 for other in range(4)] for row in range(4)]
    assert unlike(UNLIKE, near(even)) == pytest.approx(0.3, abs=1e-6)
    first_is_nearer = [[1, 0.5, 0.5, 0.5], [0.5, 1, 0.1, 0.1], [0.5, 0.1, 1, 0.1], [0.5, 0.1, 0.1, 1]]
    assert unlike(UNLIKE, near(first_is_nearer)) == pytest.approx(0.3 + ERRORS * 0.2 / 4**0.5, abs=1e-6)


@pytest.mark.parametrize(
    "fourth", [("please refund the lamp", "ask"), ("hi", "refund")], ids=["words of another", "plan of another"]
)
def test_with_five_pairs_of_unlike_runs_their_similarity_is_unknown(fourth: tuple[str, str]):
    assert unlike([*UNLIKE[:3], fourth], np.eye(4, dtype=np.float32)) is None
    assert unlike(UNLIKE[:3], np.eye(3, dtype=np.float32)) is None
    assert unlike(UNLIKE, np.eye(4, dtype=np.float32)) == pytest.approx(0)


def test_the_same_history_gives_the_same_fit_byte_for_byte():
    assert pack_fit(replay(history(shop(50))).fit) == pack_fit(replay(history(shop(50))).fit)


def test_the_fit_comes_back_from_its_bytes():
    fit = replay(history(shop(50))).fit
    back = unpack_fit(pack_fit(fit))
    assert back.order == fit.order
    assert back.runs == 50
    for name in ("weights", "terms", "having", "gains", "times"):
        assert np.array_equal(getattr(back, name), getattr(fit, name))


def test_a_fit_with_another_versions_order_or_a_number_that_is_not_finite_is_named():
    fit = replay(history(shop(50))).fit
    for wrong in (replace(fit, order="newest"), replace(fit, weights=fit.weights * np.nan)):
        with pytest.raises(WeightsCorrupt):
            unpack_fit(pack_fit(wrong))


@pytest.mark.parametrize("blob", [b"", b"nothing", pack_fit(fit_of(history(shop(5))))[:-3]])
def test_bytes_that_are_no_fit_are_named(blob: bytes):
    with pytest.raises(WeightsCorrupt):
        unpack_fit(blob)


def test_words_that_tell_plans_apart_weigh_more_than_names():
    fit = replay(history(shop(120))).fit
    broken, anna = fit.telling(terms("broken anna"))[0] / fit.rare(terms("broken anna"))[0]
    assert broken > 5 * anna


@pytest.mark.parametrize(
    ("runs", "failed"),
    [
        ([], []),
        (shop(1), []),
        (shop(8), range(8)),  # no success yet
        ([("same task", "same plan")] * 20, []),
        ([(f"task {number}", "same plan") for number in range(20)], []),
        ([("", "")] * 5, []),
        ([("word", "go")] * 12, [3, 4]),
    ],
)
def test_a_bank_that_teaches_nothing_serves_the_first_order(runs: list[tuple[str, str]], failed: list[int]):
    found = replay(history(runs, failed=failed))
    assert found.fit.order == "vote"
    assert np.isfinite(found.fit.weights).all()
    for name in ORDERS:
        assert replay(history(runs, failed=failed), name).fit.order == name


def test_where_all_tasks_are_equal_and_plans_are_not_every_order_is_charged_and_the_weights_stay_finite():
    found = replay(history([("same task", list(KINDS.values())[number % 4]) for number in range(30)]))
    assert found.questions == 30 - 4
    assert max(shares(found).values()) < 0.5
    assert min(tally.charges for tally in found.tallies.values()) > 5
    assert np.isfinite(found.fit.weights).all()


def test_a_first_order_that_is_wrong_here_gives_way_to_the_banks_own_choice():
    bank = history(shop(120))  # without vectors the newest run is the nearest by meaning
    assert list(ORDERS)[grades(bank, comparison_of(bank), "meaning").chosen[0]] == "meaning"
    assert replay(bank, "meaning").fit.order == replay(history(shop(120))).fit.order != "meaning"


def test_a_failed_run_is_no_question_and_no_answer():
    runs = shop(40)
    without = replay(history(runs))
    with_failures = replay(history([*runs, *runs[:5]], failed=range(40, 45)))
    assert with_failures.questions == without.questions


def test_where_the_rules_change_the_order_that_heeds_failures_serves():
    before = [(f"customer {number} writes about a {word} lamp", KINDS[word]) for number in range(40) for word in KINDS]
    after, failed = [], []
    for number in range(20):  # the former plan is tried in vain before the new one
        task = f"customer {40 + number} writes about a broken lamp"
        failed.append(len(before) + len(after))
        after += [(task, KINDS["broken"]), (task, "find replace")]
    found = replay(history([*before, *after], failed=failed))
    assert found.fit.order == "outcomes"
    assert found.tallies["outcomes"].first > found.tallies["vote"].first + 0.05


def test_a_run_of_weight_zero_is_no_question():
    runs = shop(40)
    plain = history(runs)
    half = replace(plain, weight=np.array([1.0, 0.0] * 20, np.float32))
    assert replay(half).questions < replay(plain).questions


def test_the_interval_of_a_share_narrows_with_questions_and_widens_with_unequal_weights():
    few, many = (replay(history(shop(size))) for size in (30, 120))
    uneven = replace(history(shop(120)), weight=np.where(np.arange(120) % 4, 0.05, 1).astype(np.float32))

    def width(found: Replay) -> float:
        choice = found.tallies[CHOICE]
        assert 0 <= choice.low <= choice.first <= choice.high <= 1
        return choice.high - choice.low

    assert width(many) < 0.6 * width(few)
    assert width(replay(uneven)) > 1.5 * width(many)


def test_before_ten_runs_nothing_is_fitted():
    assert np.array_equal(replay(history(shop(9))).fit.weights, START)


def test_runs_that_only_call_themselves_successes_do_not_vote_for_each_other():
    runs = [*shop(60), *((f"{task} padded", "fetch run") for task, _ in shop(40, seed=1))]
    trust = np.where(np.arange(100) < 60, 1, UNPROVEN_TRUST).astype(np.float32)
    bank = replace(history(runs), trust=trust, weight=trust)
    assert replay(bank).questions == replay(replace(bank, weight=np.where(trust == 1, trust, 0))).questions
    unproven = np.full(100, UNPROVEN_TRUST, np.float32)
    assert replay(replace(bank, trust=unproven, weight=unproven)).questions > UNPROVEN_TRUST * 90


def told_by_meaning(count: int) -> History:
    """Returns unproven runs whose vectors tell their kind, and whose words do not."""
    rng = np.random.default_rng(3)
    kinds = rng.integers(6, size=count)
    vectors = (np.eye(6)[kinds] + 0.02 * rng.normal(size=(count, 6))).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    words = [f"word{number}" for number in range(12)]
    runs = [(" ".join(rng.choice(words, 6, replace=False)), f"a{kind} b{kind}") for kind in kinds]
    trust = np.full(count, UNPROVEN_TRUST, np.float32)
    return replace(history(runs, vectors=vectors), trust=trust, weight=trust)


@pytest.mark.parametrize("outcome", ["success", "failure"])
def test_one_confirmed_run_leaves_what_unproven_runs_have_taught(outcome: str):
    before = told_by_meaning(120)
    trust, went_well = before.trust.copy(), before.went_well.copy()
    trust[-1], went_well[-1] = 1, outcome == "success"
    weight = np.where(went_well, trust, 0).astype(np.float32)
    after = replay(replace(before, trust=trust, weight=weight, went_well=went_well, failed=~went_well), "words")
    whole = replay(before, "words")
    assert whole.fit.order != "words"
    assert after.questions >= whole.questions - 1
    assert after.fit.order != "words"


def test_the_charges_of_the_choice_are_those_of_the_orders_that_served():
    found = replay(told_by_meaning(120), "words")
    choice, best = found.tallies[CHOICE], min(tally.charges for name, tally in found.tallies.items() if name != CHOICE)
    assert best < choice.charges < found.tallies["words"].charges
    alone = replay(history(shop(2)))
    assert alone.tallies[CHOICE].charges == 0


def test_unproven_runs_hardly_change_what_words_tell_in_a_mostly_proven_bank():
    kinds = list(KINDS) * 10
    planted = [(f"{kind} lamp note{n}", f"steal a{n % 8} b{n % 8}") for n, kind in enumerate(kinds)]
    runs = [*shop(80), *planted]
    trust = np.where(np.arange(120) < 80, 1, UNPROVEN_TRUST).astype(np.float32)
    bank = replace(history(runs), trust=trust, weight=trust)

    def gain_of(word: str, bank: History) -> float:
        fit = replay(bank).fit
        return float(looked_up(fit.terms, fit.gains, 0, terms(word))[0])

    believed = replace(bank, trust=np.ones(120, np.float32))
    assert gain_of("broken", believed) < 0.4
    assert gain_of("broken", bank) > 0.5
    assert gain_of("writes", bank) < 0.5 * gain_of("writes", believed)


def test_long_texts_are_replayed_in_little_memory():
    rng = np.random.default_rng(0)
    texts = [rng.integers(-(2**31), 2**31 - 1, 512).astype(np.int32) for _ in range(200)]
    plain = history([("task", "go")] * 200)
    tracemalloc.start()
    replay(replace(plain, terms=texts))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 60 * 2**20  # a table of all terms of all runs has 80 MiB, and replay made ten


def test_words_that_one_run_has_lengthen_its_text_and_no_other():
    runs = [("lamp broken", "go"), ("lamp broken red blue green", "stop"), ("lamp broken", "go")]
    near = comparison_of(history(runs)).near
    assert near["words"][2, 0] == pytest.approx(1)
    assert near["words"][2, 1] == near["words"][1, 0] == pytest.approx(2 / np.sqrt(2 * 5))
