"""Benchmark 2, its table: nDCG@4 by arm with intervals over users, and the differences that are aims."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from bench.learning import baselines, tau_folds
from bench.measure import Measurement
from policy.logged import Floats

FEW, MANY = 500, 2_000
RESAMPLES = 2_000
AIMS: Mapping[tuple[str, tau_folds.Mode], float] = {
    ("retail", tau_folds.Mode.COLD): 0.58,
    ("airline", tau_folds.Mode.COLD): 0.34,
    ("retail", tau_folds.Mode.WARM): 0.84,
    ("airline", tau_folds.Mode.WARM): 0.50,
}
"""Aims of the policy from full labels; warm, the best fixed rule of the first survey of this data."""
DEFAULT, FACTORY = "untrained default", "factory's start, nothing learned"
LABELS, LOGGED = "THE POLICY (from labels)", "THE POLICY (from outcomes)"
ORACLE = "oracle among the candidates"
QUERY_ONLY = "control: query-only model"
PERMUTED, PERMUTED_START = "control: permuted rewards", "control: factory's start, permuted rewards"
FIXED = frozenset({"none", *tau_folds.FIXED, *baselines.FIXED})


@dataclass(slots=True)
class Scores:
    """nDCG@4 by arm, with the user of each query; equal lengths."""

    users: list[str] = field(default_factory=list)
    by_arm: dict[str, list[float]] = field(default_factory=dict)

    def add(self, user: str, ndcg: Mapping[str, float]) -> None:
        """Adds one query."""
        self.users.append(user)
        for name, value in ndcg.items():
            self.by_arm.setdefault(name, []).append(value)

    def ordered(self) -> list[str]:
        """Returns the arms, the best last."""
        return sorted(self.by_arm, key=lambda name: float(np.mean(self.by_arm[name])))

    def column(self, name: str) -> Floats:
        """Returns one arm's nDCG of each query."""
        return np.array(self.by_arm[name])

    def best_fixed(self) -> str:
        """Returns the fixed rule that is best on these very queries: the hardest to match."""
        return [name for name in self.ordered() if name in FIXED][-1]


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two arms to compare on the same queries, with the label and the aim of their difference."""

    one: str
    other: str
    label: str
    aim: float | None = None
    proven: bool = False


def label_rows(name: str, mode: tau_folds.Mode, scores: Scores) -> list[Measurement]:
    """Returns the rows of every arm, trained on full labels or untrained, and the policy's differences."""
    aims = {LABELS: AIMS[name, mode]} if (name, mode) in AIMS else {}
    return _rows(f"{_cell(name, mode)}, full labels", scores, aims, _pairs(LABELS, scores.best_fixed(), aim=0.0))


def log_rows(name: str, mode: tau_folds.Mode, decisions: int, scores: Scores) -> list[Measurement]:
    """Returns every arm after so many logged outcomes, and the policy's differences."""
    last = decisions == MANY
    pairs = _pairs(LOGGED, scores.best_fixed(), aim=0.0 if last else None)
    pairs[1] = replace(pairs[1], aim=0.0, proven=last)
    return _rows(f"{_cell(name, mode)}, {decisions:,} logged", scores, {}, pairs)


def control_rows(name: str, mode: tau_folds.Mode, scores: Scores) -> list[Measurement]:
    """Returns the rows of the controls, which can learn nothing about the cases."""
    pairs = [
        _Pair(PERMUTED, PERMUTED_START, f"{PERMUTED}, learned"),
        _Pair(QUERY_ONLY, DEFAULT, f"{QUERY_ONLY} - {DEFAULT}"),
    ]
    what = f"{_cell(name, mode)}, {MANY:,} logged"
    only = Scores(scores.users, {arm: scores.by_arm[arm] for arm in (PERMUTED, PERMUTED_START, QUERY_ONLY)})
    return [*_rows(what, only, {}, []), *(_difference(what, scores, pair) for pair in pairs)]


def _cell(name: str, mode: tau_folds.Mode) -> str:
    return f"{name} {mode.name.lower()}"


def _pairs(policy: str, best: str, *, aim: float | None) -> list[_Pair]:
    return [
        _Pair(policy, best, f"policy - best fixed rule ({best})", aim),
        _Pair(policy, DEFAULT, f"policy - {DEFAULT}"),
        _Pair(policy, FACTORY, "policy - factory's start: learned"),
    ]


def _rows(what: str, scores: Scores, aims: Mapping[str, float], pairs: Sequence[_Pair]) -> list[Measurement]:
    arms = [_row(f"{what}: {arm}", scores.column(arm), scores, aims.get(arm)) for arm in scores.ordered()]
    return [*arms, *(_difference(what, scores, pair) for pair in pairs)]


def _difference(what: str, scores: Scores, pair: _Pair) -> Measurement:
    values = scores.column(pair.one) - scores.column(pair.other)
    row = _row(f"{what}: {pair.label}", values, scores, pair.aim)
    return replace(row, proven=pair.proven, detail=f"paired by user; {row.detail}")


def _row(name: str, values: Floats, scores: Scores, aim: float | None = None) -> Measurement:
    detail = f"nDCG@4, {len(values)} queries of {len(set(scores.users))} users"
    interval = by_user(values, scores.users)
    return Measurement(f"runs {name}", float(values.mean()), "", detail, aim, at_least=True, interval=interval)


def by_user(values: Floats, users: Iterable[str], seed: int = 0) -> tuple[float, float]:
    """Returns the 95 % interval of the mean, by a bootstrap over users with all their queries of all seeds."""
    low, high = np.quantile(resampled(values, users, seed), [0.025, 0.975])
    return float(low), float(high)


def resampled(values: Floats, users: Iterable[str], seed: int = 0) -> Floats:
    """Returns the mean in each of RESAMPLES draws of the users with replacement, (RESAMPLES,)."""
    _, place = np.unique(list(users), return_inverse=True)
    total, count = np.bincount(place, values), np.bincount(place)
    drawn = np.random.default_rng(seed).multinomial(len(count), np.full(len(count), 1 / len(count)), RESAMPLES)
    means: Floats = (drawn @ total) / (drawn @ count)
    return means
