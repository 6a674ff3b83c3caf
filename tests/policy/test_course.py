"""The course of a trial: looks that can be taken again, and what is to be expected of those to come."""

from dataclasses import replace

import numpy as np
import pytest

from policy.course import Course, course_of
from policy.logged import Logged, Target
from policy.spending import Spending
from tests.policy.worlds import two_arms

SPENDING = Spending()


def enough(log: Logged, *_pair: Target) -> bool:
    return len(log.reward) >= 300


def course(n: int, uplift: float, seed: int = 0) -> Course:
    log, contest = two_arms(n=n, uplift=uplift, seed=seed)
    return course_of(log, (contest.candidate, contest.default), SPENDING, 0, enough)


def test_what_a_look_said_is_said_again_when_the_log_has_grown():
    log, contest = two_arms(n=900, uplift=0.1)
    early = np.arange(900) < 549  # a night between two looks
    one = course_of(log.take(early), (contest.candidate.take(early), contest.default.take(early)), SPENDING, 0, enough)
    other = course_of(log, (contest.candidate, contest.default), SPENDING, 0, enough)
    for mine, again in zip(one.looks, other.looks, strict=False):
        assert mine.decisions == again.decisions
        assert (mine.difference, mine.error) == (again.difference, again.error)
        assert mine.bound == pytest.approx(again.bound, abs=1e-6)
    assert [look.decisions for look in one.looks] == [300, 350, 400, 450, 500]


def test_a_winner_passes_and_needs_no_more():
    found = course(1_000, 0.3)
    assert found.passing is not None
    assert (found.more, found.chance) == (0, 1.0)


def test_a_loser_has_next_to_no_chance_and_no_look_that_it_would_pass():
    found = course(700, -0.15)
    assert found.passing is None
    assert found.more is None
    assert found.chance < 0.01


def test_a_small_winner_is_told_how_many_decisions_it_still_takes():
    found = next(each for seed in range(20) if (each := course(500, 0.1, seed)).more)
    last = found.looks[-1]
    assert 0 < found.more <= SPENDING.longest - 500
    assert (500 + found.more) in SPENDING.looks()
    assert 0 < found.chance < 1
    assert last.z < last.bound


def test_before_the_first_look_nobody_can_say():
    assert course(200, 0.3) == Course((), None, None)


def test_policies_that_never_differ_have_nothing_to_win():
    log, contest = two_arms(n=400)
    same = replace(contest.candidate, predicted=None)
    assert course_of(log, (same, same), SPENDING, 0, enough) == Course((), None, 0.0)


def test_looking_every_night_promotes_no_better_candidates_no_more_often_than_was_to_be_spent():
    passed = sum(course(1_000, 0.0, seed).passing is not None for seed in range(150))
    assert passed <= 150 * 0.04  # .0135 by 1,000 decisions: more than six of 150 have a chance of 1 %
