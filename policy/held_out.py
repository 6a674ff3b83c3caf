"""Measures how well a trained head predicts rewards that it was not trained on, compared with the untrained default."""

import numpy as np

from policy.evaluate import clustered_mean
from policy.examples import Array, Examples
from policy.network import Head


def log_losses(examples: Examples, head: Head, blend: float) -> Array:
    """Returns the log loss of each of n decisions, (n,), in nats, of the default plus ``blend`` times the case part."""
    prior = (examples.credit * examples.prior).sum(axis=1)
    slates = prior + blend * head.credited(examples.inputs, examples.credit)  # (M, n)
    odds = head.log_odds(examples.query, slates).mean(axis=0)
    return np.asarray(np.logaddexp(0, odds) - examples.reward * odds, dtype=np.float32)


def held_out_log_loss(late: Examples, head: Head, blend: float) -> dict[str, float]:
    """Returns mean log losses on decisions that the head was not trained on, in nats; without decisions, no losses.

    The default's loss has the head's query part, too, which says how hard the query is: the two losses differ by the
    ranking alone.

    * ``held_out``: number of decisions.
    * ``log_loss_gain``, ``log_loss_gain_error``: log loss of the default less the head's, and its standard error,
      clustered by query.
    * ``mean_reward``: mean reward of the decisions.
    * ``log_loss_of_default``, ``log_loss``: log loss of the default, and of the head as it serves.
    """
    if not len(late):
        return {"held_out": 0, "log_loss_gain": 0.0, "log_loss_gain_error": 0.0}
    before, after = log_losses(late, head, 0.0), log_losses(late, head, blend)
    gain, error = clustered_mean((before - after).astype(np.float64), late.group)
    return {
        "held_out": len(late),
        "log_loss_gain": gain,
        "log_loss_gain_error": error,
        "mean_reward": float(late.reward.mean()),
        "log_loss_of_default": float(before.mean()),
        "log_loss": float(after.mean()),
    }
