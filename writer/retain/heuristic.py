"""Guesses a run's reward by rule; any reward given later outweighs the guess."""

from retrieval.tables.kinds import RunOutcome

UNRESOLVED_DISCOUNT = 0.5
"""Factor of the reward when some tool's last call failed."""

_OUTCOME_REWARD: dict[RunOutcome, float | None] = {
    "success": 1.0,
    "partial": 0.5,
    "failure": 0.0,
    "aborted": None,
    "unknown": None,
}


def heuristic_reward(outcome: RunOutcome, *, unresolved: bool) -> float | None:
    """Returns the reward, 0 to 1, that the outcome and the failed calls suggest; None where they suggest none.

    Success 1, partial 0.5, failure 0; half of that if the last call of some tool failed. An error that a later call of
    the same tool made good is how agents work, and costs nothing. An aborted run, and a run with an unknown outcome,
    get no guess and credit no case.
    """
    whole = _OUTCOME_REWARD[outcome]
    return None if whole is None else whole * (UNRESOLVED_DISCOUNT if unresolved else 1.0)
