"""How well a head foretells rewards that it was not trained on, against the untrained default."""

from typing import Any

import numpy as np

from policy.examples import Examples
from policy.network import Head


def foretold(late: Examples, head: Head, blend: float) -> dict[str, Any]:
    """Returns the mean log loss on later decisions, in nats, of the default and of the blend, and what the blend gains.

    Both know how hard the query is from the head's query part, so that the difference is the ranking's alone. The
    error is the standard error of the gain.
    """
    if not len(late):
        return {"held_out": 0, "log_loss_gain": 0.0, "log_loss_gain_error": 0.0}
    prior = (late.credit * late.prior).sum(axis=1)
    base = head.log_odds(late.query, prior, late.empty).mean(axis=0)
    blended = prior + blend * head.credited(late.inputs, late.credit)
    full = head.log_odds(late.query, blended, late.empty).mean(axis=0)
    before, after = _log_losses(base, late.reward), _log_losses(full, late.reward)
    return {
        "held_out": len(late),
        "mean_reward": float(late.reward.mean()),
        "log_loss_of_default": float(before.mean()),
        "log_loss": float(after.mean()),
        "log_loss_gain": float((before - after).mean()),
        "log_loss_gain_error": float((before - after).std() / np.sqrt(len(late))),
    }


def _log_losses(odds: np.ndarray, reward: np.ndarray) -> np.ndarray:
    return np.asarray(np.logaddexp(0, odds) - reward * odds)
