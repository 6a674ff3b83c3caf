"""Doubt about a slate: none of its cases is expected to be rewarded, so an empty one may be better."""

from policy.default import posterior_mean
from policy.features import Features, column
from policy.slate import Slate

EVEN = 0.5
"""Expected reward of an unknown case."""


def in_doubt(features: Features, slate: Slate) -> bool:
    """Returns whether each case of the slate failed, or has a lower expected reward than an unknown case."""
    shown = features[list(slate)]
    return bool(((column(shown, "failed") > 0) | (posterior_mean(shown) < EVEN)).all())
