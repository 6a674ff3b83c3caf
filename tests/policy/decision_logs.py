"""Logs of decisions for the tests of evaluation."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from policy.logged import (
    Floats,
    Logged,
)


def log(reward: ArrayLike, propensity: Floats | None = None, **columns: Any) -> Logged:
    reward = np.asarray(reward, dtype=float)
    n = len(reward)
    propensity = np.ones(n) if propensity is None else propensity
    filled = {"group": np.arange(n), "segment": np.zeros(n, dtype=int), "covariates": np.zeros((n, 0))}
    return Logged(reward=reward, logged_propensity=propensity, **filled | columns)
