"""Computes the reward of a case that stands for several equal runs: the mean over the runs' rewards.

A heuristic reward is a guess. Once one of the runs has a trusted reward, of a user, a judge or a metric, the mean is
over the trusted rewards alone, each with the same weight: the newest one of each run, in whatever order they came. The
column ``trusted_runs`` counts them, because the merged runs are deleted in time, and ``own_reward`` keeps that of the
case's own run.
"""

from sqlalchemy import case, func, or_

from retrieval.tables.cases import cases
from retrieval.tables.kinds import is_trusted

_GUESSED = or_(cases.c.reward.is_(None), func.coalesce(cases.c.reward_source, "heuristic") == "heuristic")

OWN_REWARD = case((cases.c.occurrences > 1, cases.c.own_reward), (~_GUESSED, cases.c.reward))
"""The trusted reward of a case's own run, without its repeats; null: the run has none."""


def one_more(reward: float, source: str | None) -> dict[str, object]:
    """Returns a case's new reward columns after one more run with this reward was merged into the case.

    A guessed reward does not change the reward of a case that has a trusted one.
    """
    if is_trusted(source):
        return _trusted(reward, source)
    known = func.coalesce(cases.c.reward, reward)
    mean = (known * cases.c.occurrences + reward) / (cases.c.occurrences + 1)
    # a case without a reward, as of aborted runs, takes the guess's source along
    return {
        "reward": case((_GUESSED, mean), else_=cases.c.reward),
        "reward_source": func.coalesce(cases.c.reward_source, "heuristic"),
    }


def judged(reward: float, source: str | None, before: float | None) -> dict[str, object]:
    """Returns a case's new reward columns after one of its runs, its own or a repeat, gets a trusted reward.

    ``before`` is the run's trusted reward until now, which the case's mean contains; None: the run had none.
    """
    if before is None:
        return _trusted(reward, source)
    mean = cases.c.reward + (reward - before) / func.greatest(cases.c.trusted_runs, 1)
    # rounded, or of a version that did not keep the reward before in the mean
    bounded = func.greatest(0.0, func.least(1.0, mean))
    return {"reward": case((cases.c.trusted_runs > 1, bounded), else_=reward)}


def _trusted(reward: float, source: str | None) -> dict[str, object]:
    """Returns the case's new columns after one more trusted reward: it replaces guesses, or joins trusted rewards."""
    before = case((_GUESSED, 0), else_=func.greatest(cases.c.trusted_runs, 1))
    mean = (func.coalesce(cases.c.reward, 0) * before + reward) / (before + 1)
    return {
        "reward": mean,
        "reward_source": case((_GUESSED, source), else_=cases.c.reward_source),
        "trusted_runs": before + 1,
    }
