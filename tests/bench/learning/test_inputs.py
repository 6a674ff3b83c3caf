"""The benchmark of the policy's inputs: what an arm does not see has no say, and no domain outweighs another."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench.learning import inputs, runs, tau, tau_folds, tried
from bench.learning.inputs import NAMES, OF_QUERY, Met
from bench.learning.scores import DEFAULT
from policy.examples import Examples
from policy.inputs import CASE


@pytest.fixture(scope="module")
def met(airline: tau.Domain, airline_folder: Path) -> list[Met]:
    written = tried.read(airline_folder, airline)
    questions = [question for _, question in tau_folds.tested(airline, inputs.SEEDS)]
    return [Met.of(runs.Asked.of(airline, question), written) for question in questions[:60]]


@pytest.fixture(scope="module")
def labels(met: list[Met]) -> Examples:
    return inputs.labels(met)


def test_each_input_is_alone_in_an_arm_and_what_is_tried_is_never_among_all_that_there_are():
    arms = inputs.arms()
    assert len(arms) == 2 + 2 * len(NAMES)
    assert arms[inputs.ALL].sum() == len(CASE) == arms["without similarity"].sum() + 1
    assert arms[inputs.ALL_AND_TRIED].all()
    with_one = arms[f"with {tried.NAMES[0]}"]
    assert with_one[: len(CASE)].all()
    assert with_one.sum() == len(CASE) + 1
    assert all(these.sum() == 1 for name, these in arms.items() if name.endswith(" alone"))


@pytest.mark.parametrize("name", ["log_agreement", tried.NAMES[0]])
def test_what_an_arm_does_not_see_is_gone_from_the_case_and_from_the_query(labels: Examples, name: str):
    these = np.array([each != name for each in NAMES])
    shown, place = inputs.seen(labels, these), NAMES.index(name)
    assert labels.inputs[..., place].any()
    assert not shown.inputs[..., place].any()
    assert not shown.query[:, OF_QUERY.index(f"first_{name}")].any()
    assert (np.delete(shown.inputs, place, axis=-1) == np.delete(labels.inputs, place, axis=-1)).all()


def test_an_input_that_is_not_seen_has_no_say(labels: Examples):
    arms = {"similarity alone": inputs.arms()["similarity alone"]}
    (policy,) = inputs.learned([labels], arms).values()
    noise = np.random.default_rng(0).normal(size=labels.inputs.shape).astype(np.float32)
    other = replace(labels, inputs=np.where(arms["similarity alone"], labels.inputs, noise))
    (again,) = inputs.learned([other], arms).values()
    assert (policy.head.case_part(labels.inputs[:, 0]) == again.head.case_part(labels.inputs[:, 0])).all()


@pytest.mark.parametrize("name", ["similarity", "words_missing"])
def test_a_label_that_one_input_tells_is_learned_from_it_and_not_without_it(labels: Examples, name: str):
    known = labels.inputs[:, 0, NAMES.index(name)]
    told = replace(labels, reward=(known > np.median(known)).astype(np.float32), prior=np.zeros_like(labels.prior))
    arms = inputs.arms()
    policies = inputs.learned([told], {arm: arms[arm] for arm in (f"{name} alone", "tag_count alone")})
    alone, blind = (
        policy.head.case_part(labels.inputs[:, 0] * arms[arm]).mean(axis=0) for arm, policy in policies.items()
    )
    assert np.corrcoef(alone, known)[0, 1] > 0.9
    assert np.ptp(blind) < np.ptp(alone) / 10


def test_the_default_is_among_what_is_reached(met: list[Met]):
    assert set(inputs.reached(met[0], {}, {})) == {DEFAULT}
