"""Measures how well a trained head predicts rewards that it was not trained on, compared with the untrained default."""

import numpy as np

from policy.examples import Examples
from policy.network import Head


def held_out_log_loss(late: Examples, head: Head, blend: float) -> dict[str, float]:
    """Returns mean log losses on decisions that the head was not trained on, in nats; without decisions, no losses.

    The blend is the untrained default's score plus ``blend`` times the head's case part, as it serves. Both sides use
    the head's query part, which says how hard the query is, so that they differ in the ranking alone.

    * ``held_out``: number of decisions.
    * ``log_loss_gain``, ``log_loss_gain_error``: log loss of the default less the blend's, and its standard error.
    * ``mean_reward``: mean reward of the decisions.
    * ``log_loss_of_default``, ``log_loss``: log loss of the default, and of the blend.
    """
    if not len(late):
        return {"held_out": 0, "log_loss_gain": 0.0, "log_loss_gain_error": 0.0}
    prior = (late.credit * late.prior).sum(axis=1)
    blended = prior + blend * head.credited(late.inputs, late.credit)
    before, after = (
        np.logaddexp(0, odds) - late.reward * odds
        for odds in (head.log_odds(late.query, each).mean(axis=0) for each in (prior, blended))
    )
    return {
        "held_out": len(late),
        "log_loss_gain": float((before - after).mean()),
        "log_loss_gain_error": float((before - after).std() / np.sqrt(len(late))),
        "mean_reward": float(late.reward.mean()),
        "log_loss_of_default": float(before.mean()),
        "log_loss": float(after.mean()),
    }
