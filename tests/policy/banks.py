"""Small banks of runs as numbers, for the tests of orders and of replay."""

import zlib
from collections.abc import Sequence

import numpy as np

from policy.agreement import Moves
from policy.channels import Terms, words
from policy.history import History


def number(text: str) -> int:
    """Returns a number that stands for a text, the same in every process."""
    return zlib.crc32(text.encode()) - (1 << 31)


def terms(task: str) -> Terms:
    """Returns the terms of a task."""
    return np.array([number(word) for word in words(task)], dtype=np.int32)


def moves(plan: str) -> Moves:
    """Returns the moves of a plan, which are its words."""
    return np.array([number(move) for move in plan.split()], dtype=np.int32)


def history(
    runs: Sequence[tuple[str, str]], *, failed: Sequence[int] = (), vectors: np.ndarray | None = None
) -> History:
    """Returns the runs, each a task and a plan, an hour apart; those whose indices are named failed."""
    count = len(runs)
    return History(
        times=np.arange(count) * 3600.0,
        terms=[terms(task) for task, _ in runs],
        vectors=np.zeros((count, 0), np.float32) if vectors is None else vectors,
        moves=[moves(plan) for _, plan in runs],
        went_well=np.array([index not in set(failed) for index in range(count)], dtype=np.bool_),
        failed=np.array([index in set(failed) for index in range(count)], dtype=np.bool_),
        trust=np.ones(count, np.float32),
        weight=np.ones(count, np.float32),
        newest=np.arange(count) * 3600.0,
    )


KINDS = {
    "broken": "find refund reason=broken",
    "early": "find cancel",
    "small": "find exchange size=up",
    "moved": "find address",
}
"""The plan for each word that tells kinds of tasks apart."""
NAMES = ("anna", "ben", "carla", "dev", "emil")
GOODS = ("lamp", "shirt", "phone", "chair")


def shop(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """Returns runs of a shop: one word of a task tells its plan; customer and goods are shared by unlike tasks."""
    rng = np.random.default_rng(seed)
    return [
        (f"{NAMES[rng.integers(5)]} writes about the {GOODS[rng.integers(4)]} that is {word}", KINDS[word])
        for word in rng.choice(list(KINDS), size=count)
    ]
