"""The benchmark of the policy's inputs: what an arm does not see has no say, and no domain outweighs another."""

from dataclasses import replace

import numpy as np
import pytest

from app.bench.learning import inputs, runs, tau, tau_folds
from app.bench.learning.scores import DEFAULT
from policy.examples import Examples
from policy.inputs import CASE, QUERY


@pytest.fixture(scope="module")
def asked(airline: tau.Domain) -> list[runs.Asked]:
    questions = [question for _, question in tau_folds.tested(airline, inputs.SEEDS)]
    return [runs.Asked.of(airline, question) for question in questions[:60]]


@pytest.fixture(scope="module")
def labels(asked: list[runs.Asked]) -> Examples:
    return runs.labels(asked)


def test_there_is_an_arm_without_each_input_and_one_of_it_alone():
    arms = inputs.arms()
    assert len(arms) == 1 + 2 * len(CASE)
    assert {int(these.sum()) for these in arms.values()} == {len(CASE), len(CASE) - 1, 1}


def test_what_an_arm_does_not_see_is_gone_from_the_case_and_from_the_query(labels: Examples):
    shown = inputs.seen(labels, inputs.arms()["without log_agreement"])
    place = CASE.index("log_agreement")
    assert not shown.inputs[..., place].any()
    assert not shown.query[:, QUERY.index("first_log_agreement")].any()
    assert (np.delete(shown.inputs, place, axis=-1) == np.delete(labels.inputs, place, axis=-1)).all()


def test_an_input_that_is_not_seen_has_no_say(asked: list[runs.Asked], labels: Examples):
    arms = {"similarity alone": inputs.arms()["similarity alone"]}
    (policy,) = inputs.learned([labels], arms).values()
    noise = np.random.default_rng(0).normal(size=labels.inputs.shape).astype(np.float32)
    other = replace(labels, inputs=np.where(arms["similarity alone"], labels.inputs, noise))
    (again,) = inputs.learned([other], arms).values()
    assert (policy.head.case_part(labels.inputs[:, 0]) == again.head.case_part(labels.inputs[:, 0])).all()


def test_a_label_that_one_input_tells_is_learned_from_it_and_not_without_it(asked: list[runs.Asked], labels: Examples):
    known = labels.inputs[:, 0, CASE.index("similarity")]
    told = replace(labels, reward=(known > np.median(known)).astype(np.float32), prior=np.zeros_like(labels.prior))
    arms = inputs.arms()
    policies = inputs.learned([told], {name: arms[name] for name in ("similarity alone", "tag_count alone")})
    alone, blind = (
        policy.head.case_part(labels.inputs[:, 0] * arms[name]).mean(axis=0) for name, policy in policies.items()
    )
    assert np.corrcoef(alone, known)[0, 1] > 0.9
    assert np.ptp(blind) < np.ptp(alone) / 10


def test_the_default_is_among_what_is_reached(asked: list[runs.Asked]):
    assert set(inputs.reached(asked[0], {}, {})) == {DEFAULT}
