"""The reward of a case that stands for several runs: the mean over their rewards, trusted ones before guesses.

A heuristic is a guess: as soon as somebody who is trusted gave a reward to one of the runs, the mean is over such
rewards alone, and each of them weighs the same. ``trusted_runs`` counts them, for the runs themselves are deleted in
time.
"""

from sqlalchemy import case, func, or_

from retrieval.tables.cases import cases
from retrieval.tables.kinds import is_trusted

_GUESSED = or_(cases.c.reward.is_(None), func.coalesce(cases.c.reward_source, "heuristic") == "heuristic")


def one_more(reward: float, source: str | None) -> dict[str, object]:
    """Returns what one more run with this reward changes of the case's row."""
    return _trusted(reward, source) if is_trusted(source) else _guess(reward)


def judged_again(reward: float, source: str, before: float | None, source_before: str | None) -> dict[str, object]:
    """Returns the case's new columns when a trusted reward replaces the reward of a run that is counted already."""
    if before is None or not is_trusted(source_before):
        return _trusted(reward, source)
    mean = cases.c.reward + (reward - before) / func.greatest(cases.c.trusted_runs, 1)
    # feedback on the kept case itself may have taken the place of the mean that the reward before was part of
    return {"reward": func.greatest(0.0, func.least(1.0, mean))}


def _guess(reward: float) -> dict[str, object]:
    """Returns the case's new columns after one more guessed reward; a case with a trusted reward keeps its own."""
    known = func.coalesce(cases.c.reward, reward)
    mean = (known * cases.c.occurrences + reward) / (cases.c.occurrences + 1)
    # a case without any reward, as of runs that were broken off, takes the guess's source along
    return {
        "reward": case((_GUESSED, mean), else_=cases.c.reward),
        "reward_source": func.coalesce(cases.c.reward_source, "heuristic"),
    }


def _trusted(reward: float, source: str | None) -> dict[str, object]:
    """Returns what one more trusted reward changes: guesses give way to it, others it joins."""
    before = case((_GUESSED, 0), else_=func.greatest(cases.c.trusted_runs, 1))
    mean = (func.coalesce(cases.c.reward, 0) * before + reward) / (before + 1)
    return {
        "reward": mean,
        "reward_source": case((_GUESSED, source), else_=cases.c.reward_source),
        "trusted_runs": before + 1,
    }
