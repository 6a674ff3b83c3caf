"""Guesses a run's reward by rule; any reward that is given for the run outweighs the guess."""

from retrieval.tables.kinds import RunOutcome

UNRESOLVED_DISCOUNT = 0.5
"""Factor of a run's guessed reward if the last call of some tool failed."""

_OUTCOME_REWARD: dict[RunOutcome, float | None] = {
    "success": 1.0,
    "partial": 0.5,
    "failure": 0.0,
    "aborted": None,
    "unknown": None,
}


def heuristic_reward(outcome: RunOutcome, *, unresolved: bool) -> float | None:
    """Returns the guessed reward of a run, 0 to 1, by its outcome and failed calls; None: no guess.

    The reward is 1 for a success, 0.5 for a partial success and 0 for a failure; half of that if the last call of a
    tool failed. A failed call that a later call of the same tool put right has no cost. Aborted runs and runs with an
    unknown outcome get no guess, and credit no case.
    """
    whole = _OUTCOME_REWARD[outcome]
    return None if whole is None else whole * (UNRESOLVED_DISCOUNT if unresolved else 1.0)
