"""The decisions of a log, and what they say of memory."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from app.impact.decisions_seen import DecisionsSeen, seen_in
from policy.explore import NULL_SHARE

BEGAN = datetime(2026, 1, 5, tzinfo=UTC)


@dataclass(frozen=True)
class Row:
    query: str
    reward: float | None
    slate_propensity: float
    is_empty: bool
    created_at: datetime
    query_group: int | None = None


def helpful(explored: float, explore: float, count: int = 4_000) -> DecisionsSeen:
    """A log in which a slate doubles the chance of success, and the profile's share of explored slates now."""
    rng = np.random.default_rng(0)
    rows = []
    for number in range(count):
        is_empty = bool(rng.random() < explored * NULL_SHARE)
        chance = explored * NULL_SHARE if is_empty else 1 - explored * NULL_SHARE
        reward = float(rng.random() < (0.4 if is_empty else 0.8))
        rows.append(Row(f"query {number}", reward, chance, is_empty, BEGAN + timedelta(minutes=number)))
    return seen_in(rows, explore)


def test_what_was_measured_stays_when_exploration_is_turned_off():
    while_on, since = (helpful(0.05, explore).less_empty() for explore in (0.05, 0.0))
    assert while_on.helped
    assert (since.low, since.high, since.helped) == (while_on.low, while_on.high, True)


def test_without_exploration_there_is_no_verdict():
    found = helpful(0.0, 0.0).less_empty()
    assert (found.helped, found.estimate, found.more) == (None, None, None)
