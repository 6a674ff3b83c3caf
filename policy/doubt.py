"""When it is in doubt whether telling helps at all: where a slate holds nothing that is expected to be rewarded."""

from policy.default import posterior_mean
from policy.features import Features, column
from policy.slate import Slate

EVEN = 0.5
"""The expected reward of a case of which nothing is known."""


def in_doubt(features: Features, slate: Slate) -> bool:
    """Returns whether each case of the slate failed, or has by its record less to expect than an unknown one has."""
    shown = features[list(slate)]
    return bool(((column(shown, "failed") > 0) | (posterior_mean(shown) < EVEN)).all())
