"""The fit: serving by its numbers is what replay would have told."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy.channels import LEAST_GAIN
from policy.features import Candidates, comparison_with
from policy.fit import fit_of
from policy.history import History, trust_of
from policy.orders import MIXED, ORDERS, START, Comparison, mixture
from policy.replay import comparison_of, replay
from tests.policy.banks import history, shop, terms
from tests.policy.builders import unhurried

HALF = 2e-3
"""Relative error of a sum of a few numbers in half precision."""


def first(runs: History, count: int) -> History:
    """Returns the first ``count`` runs of a history, as the bank knew them when the next run began, if there is one."""
    until = runs.times[count] if count < len(runs.times) else np.inf
    return History(
        runs.times[:count],
        runs.terms[:count],
        runs.vectors[:count],
        runs.moves[:count],
        runs.went_well[:count],
        runs.failed[:count],
        runs.trust[:count],
        runs.weight[:count],
        np.where(runs.newest < until, runs.newest, runs.times)[:count],
    )


def asked(runs: History, weights: np.ndarray = START, record: np.ndarray | None = None) -> Comparison:
    """Returns the comparison of the last run's task, as a query, with all runs before it, in serving.

    ``record`` is that of each run before; None: 1 for each.
    """
    count = len(runs.terms) - 1
    known = Candidates(
        times=first(runs, count).newest,
        terms=runs.terms[:-1],
        moves=runs.moves[:-1],
        similarity=runs.vectors[:-1] @ runs.vectors[-1] if runs.vectors.size else np.full(count, np.nan, np.float32),
        reward=np.ones(count, np.float32),
        record=np.ones(count, np.float32) if record is None else record,
        steps=np.ones(count, np.float32),
        proven=runs.trust[:-1] == 1,
        failed=~runs.went_well[:-1],
    )
    return comparison_with(runs.terms[-1], known, fit_of(first(runs, count), weights=weights))


def served(runs: History, weights: np.ndarray = START) -> dict[str, np.ndarray]:
    """Returns the channels and scores by which the last run's task would have been answered from all before it."""
    return last_row(asked(runs, weights), weights)


def replayed(runs: History, weights: np.ndarray = START) -> dict[str, np.ndarray]:
    """Returns the last row of replay, for all runs before."""
    return {name: row[:-1] for name, row in last_row(comparison_of(runs), weights).items()}


def last_row(comparison: Comparison, weights: np.ndarray) -> dict[str, np.ndarray]:
    """Returns the runs' scores by each order, and how recent they are, for the comparison's last query."""
    mixed = mixture(comparison, weights)
    rows = {name: order(comparison, mixed) for name, order in ORDERS.items()} | {"recent": comparison.near["recent"]}
    return {name: row[-1] for name, row in rows.items()}


def plain(count: int = 60, **more: Any) -> History:
    """Returns runs of a shop whose plans have one move each, so that two agree wholly or not at all."""
    return history([(task, plan.split()[-1]) for task, plan in shop(count)], **more)


def worlds() -> dict[str, History]:
    rng = np.random.default_rng(5)
    vectors = rng.normal(size=(60, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    runs = [(task, plan.split()[-1]) for task, plan in shop(60)]
    return {
        "plain": plain(),
        "some failed": plain(failed=range(3, 59, 7)),
        "with vectors": plain(vectors=vectors),
        "some have no vector": plain(vectors=np.where(rng.random((60, 1)) < 0.3, 0, vectors)),
        "some unproven": replace(plain(), trust=np.where(np.arange(60) % 3 > 0, 1, 0.25).astype(np.float32)),
        "words that are new": history([*runs, ("hello zebra", "go")]),
        "two runs": plain(2),
        "some were repeated": replace(plain(), newest=plain().times + 3600.5 * (np.arange(60) % 7)),
        "most failed and were repeated": replace(
            plain(failed=range(2, 59, 2)), newest=plain().times + 3600.5 * rng.integers(0, 99, 60)
        ),
        "texts without words": history([*runs, ("", "stop"), ("?!", "stop")]),
    }


@pytest.mark.parametrize("runs", worlds().values(), ids=list(worlds()))
@pytest.mark.parametrize("weights", [START, np.array([1, 20, 2, 0.1], np.float32)], ids=["first", "others"])
def test_serving_is_what_replay_would_have_told(runs: History, weights: np.ndarray):
    found, expected = served(runs, weights), replayed(runs, weights)
    for name, numbers in expected.items():
        assert found[name] == pytest.approx(numbers, rel=HALF, abs=1e-3), name


def test_where_plans_agree_in_part_serving_differs_from_replay_by_the_weight_of_the_last_plan_alone():
    # replay weighs moves by how many plans of the whole bank have them, the last one's included
    runs = history(shop(200))
    found, expected = served(runs), replayed(runs)
    for name, numbers in expected.items():
        assert found[name] == pytest.approx(numbers, rel=HALF, abs=1 / 200), name


told = st.tuples(st.booleans(), st.booleans(), st.floats(0.25, 1, width=32))
"""Whether a run went well, whether others confirm that, and its record."""


@unhurried
@given(st.lists(told, min_size=12, max_size=12))
def test_serving_and_replay_weigh_a_runs_outcome_the_same(fates: list[tuple[bool, bool, float]]):
    well, proven, record = (np.array(each) for each in zip(*fates, strict=True))
    bank = plain(13, failed=np.flatnonzero(~well).tolist())
    bank = replace(bank, trust=np.append(trust_of(proven), np.float32(1)))
    found, expected = asked(bank, record=record.astype(np.float32)), comparison_of(bank)
    for name in ("good", "failed", "newer"):
        assert np.array_equal(getattr(found, name)[0], getattr(expected, name)[-1, :-1]), name
    assert found.trust.tolist() == expected.trust[:-1].tolist()
    mixed = mixture(expected, START)  # one for both, for the last run's own proof may change what words tell
    lost, lost_in_replay = (
        (ORDERS["outcomes"](each, near) / ORDERS["vote"](each, near))[-1, :12]
        for each, near in ((found, mixed[-1:, :-1]), (expected, mixed))
    )
    assert lost == pytest.approx(lost_in_replay, rel=1e-5)


def test_a_replay_leaves_the_numbers_of_all_its_runs_and_the_weights_that_it_fitted():
    runs = history(shop(60))
    fit = replay(runs).fit
    plain_fit = fit_of(runs, fit.order, fit.weights)
    for name in ("runs", "order"):
        assert getattr(fit, name) == getattr(plain_fit, name)
    for name in ("weights", "terms", "having", "gains", "times"):
        assert np.array_equal(getattr(fit, name), getattr(plain_fit, name))
    assert not np.array_equal(fit.weights, START)
    assert len(fit.weights) == len(MIXED)


def test_terms_that_one_run_has_are_weighed_as_those_that_none_has():
    fit = fit_of(history([("lamp zebra", "go"), ("lamp chair", "go"), ("phone", "stop")]))
    assert fit.terms.tolist() == terms("lamp").tolist()
    assert fit.rare(terms("zebra")).tolist() == fit.rare(terms("never")).tolist()
    assert fit.rare(terms("zebra"))[0, 0] > fit.rare(terms("lamp"))[0, 0]


def test_a_term_that_tells_nothing_of_plans_keeps_a_little_of_its_weight():
    fit = fit_of(history([("lamp", "go"), ("lamp", "stop"), ("phone", "go"), ("phone", "stop")]))
    assert fit.telling(terms("lamp")) == pytest.approx(fit.rare(terms("lamp")) * LEAST_GAIN)


def test_the_gain_of_a_term_comes_from_runs_that_went_well():
    runs = [("lamp anna", "go"), ("lamp ben", "go"), ("phone anna", "stop"), ("phone ben", "stop")]
    well, failed = fit_of(history(runs)), fit_of(history(runs, failed=[0, 1]))
    lamp = int(np.flatnonzero(well.terms == terms("lamp")[0])[0])
    assert well.gains[lamp] > 0
    assert failed.gains[lamp] == 0


def test_the_fit_of_no_runs_serves():
    fit = fit_of(history([]))
    assert (fit.runs, fit.order) == (0, "vote")
    assert np.isfinite(fit.telling(terms("lamp"))).all()
    assert fit.runs_since(np.array([0.0])).tolist() == [0]


def test_runs_since_a_time_are_those_that_are_newer():
    fit = fit_of(history(shop(10)))  # an hour apart
    assert fit.runs_since(np.array([-1.0, 0.0, 3600.0, 9 * 3600.0, 1e9])).tolist() == [10, 9, 8, 0, 0]
