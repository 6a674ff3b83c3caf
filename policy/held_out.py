"""Measures how well a trained head predicts rewards that it was not trained on, compared with the untrained default."""

from dataclasses import asdict, dataclass

import numpy as np

from policy.examples import Examples
from policy.network import Head


@dataclass(frozen=True, slots=True)
class HeldOutLogLoss:
    """Mean log losses of reward predictions on held-out decisions, in nats; a mean over no decision is None.

    The *blend* is the untrained default's score plus the learned part (the head's case part), weighted as it serves.

    Attributes:
        held_out: number of held-out decisions.
        log_loss_gain: log loss of the untrained default less that of the blend.
        log_loss_gain_error: standard error of the gain.
        mean_reward: mean reward of the held-out decisions.
        log_loss_of_default: log loss of the untrained default with the head's query part.
        log_loss: log loss of the blend with the head's query part.
    """

    held_out: int = 0
    log_loss_gain: float = 0.0
    log_loss_gain_error: float = 0.0
    mean_reward: float | None = None
    log_loss_of_default: float | None = None
    log_loss: float | None = None

    def as_json(self) -> dict[str, float]:
        """Returns the fields by their names, without those that are None."""
        return {name: value for name, value in asdict(self).items() if value is not None}


def held_out_log_loss(late: Examples, head: Head, blend: float) -> HeldOutLogLoss:
    """Returns the log losses of the untrained default and of the blend on later decisions.

    Both use the head's query part, which says how hard the query is, so that they differ in the ranking alone.
    """
    if not len(late):
        return HeldOutLogLoss()
    prior = (late.credit * late.prior).sum(axis=1)
    base = head.log_odds(late.query, prior).mean(axis=0)
    blended = prior + blend * head.credited(late.inputs, late.credit)
    full = head.log_odds(late.query, blended).mean(axis=0)
    before, after = _log_losses(base, late.reward), _log_losses(full, late.reward)
    return HeldOutLogLoss(
        held_out=len(late),
        log_loss_gain=float((before - after).mean()),
        log_loss_gain_error=float((before - after).std() / np.sqrt(len(late))),
        mean_reward=float(late.reward.mean()),
        log_loss_of_default=float(before.mean()),
        log_loss=float(after.mean()),
    )


def _log_losses(odds: np.ndarray, reward: np.ndarray) -> np.ndarray:
    return np.asarray(np.logaddexp(0, odds) - reward * odds)
