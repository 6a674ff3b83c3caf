"""Credit for a slate's outcome, in a world of known truth: an agent follows one case, and credit follows it or not."""

import numpy as np
import pytest

from bench.learning import banking, credit
from bench.learning.credit import Agent, Credit, Stream
from bench.learning.reuse import Stage
from tests.bench.learning.conftest import TINY


@pytest.fixture(scope="module")
def stream(reuse: Stage) -> Stream:
    return Stream(reuse, 0, Agent.KNOWS)


def slates(stream: Stream) -> list[tuple[int, tuple[int, ...]]]:
    """Slates of the first four candidates, some with helpers and some without."""
    return [(now, (0, 1, 2, 3)) for now in range(40)]


def test_an_agent_that_can_tell_follows_what_helps_and_its_outcome_is_that_cases(stream: Stream):
    works, flipped = stream.stage.world.works(), stream.stage.world.flipped
    for now, slate in slates(stream):
        helps = works[now, list(slate)]
        assert helps[stream.followed(now, slate)] == helps.any()
        assert stream.outcome(now, slate) == float(helps.any() != flipped[now])
    assert len({works[now, :4].any() for now, _ in slates(stream)}) == 2


def test_credit_goes_to_the_cases_of_the_runs_plan_or_to_the_case_it_names_or_to_all_alike(stream: Stream):
    for now, slate in slates(stream):
        answers = stream.stage.world.bank.answers[stream.stage.stream[now].case[:4]]
        place = stream.followed(now, slate)
        assert stream.shares(Credit.ALIKE, now, slate) == pytest.approx(np.full(4, 1 / 4))
        assert stream.shares(Credit.NAMED, now, slate) == pytest.approx(np.eye(4)[place])
        by_plan = stream.shares(Credit.PLAN, now, slate)
        assert by_plan.sum() == pytest.approx(1)
        if not (same := answers == answers[place]).all():
            assert by_plan[same].min() > 0.2
            assert by_plan[~same].max() < 0.011
    assert stream.shares(Credit.PLAN, 0, ()).shape == (0,)


def test_the_table_holds_each_credit_of_each_agent_against_credit_for_all_alike(
    small_corpus: banking.Corpus,
):
    rows = {row.name: row for row in credit.run(small_corpus, TINY, (0,), (0, 60))}
    for agent in Agent:
        name = f"credit, agent follows {agent.value}"
        assert all(f"{name}, {each.value}: first answer right" in rows for each in Credit)
        gained = rows[f"{name}: first answer right, {Credit.PLAN.value} - {Credit.ALIKE.value}"]
        apart = [rows[f"{name}, {each.value}: first answer right"].value for each in (Credit.PLAN, Credit.ALIKE)]
        assert gained.value == pytest.approx(apart[0] - apart[1])
