"""Benchmark 6: what use alone does to the served order. Nothing is trained, and no order may get worse by being used.

The untrained default serves a stream of queries and learns of each what it earned; the same test queries are ordered
before the first decision and after so many.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from bench.learning import runs, scores, tau, tau_folds
from bench.learning.banking import Corpus, Scenario, earned
from bench.learning.baselines import by
from bench.learning.learner import Prepared, Service, remembered
from bench.learning.reuse import Stage, stage
from bench.learning.rules import interval
from bench.learning.scores import Scores
from bench.measure import Measurement
from policy.logged import Floats

MARKS = (0, 500, 2_000, 5_000)
SEEDS = (0,)
PLACES = (1, 4)
"""Of a slate in simulated reuse; of four, each is credited with what came of all."""

Curve = Mapping[int, Sequence[Floats]]
"""By decisions so far, what each test query earned, of each seed."""


def on_runs(name: str, domain: tau.Domain, marks: Sequence[int] = MARKS) -> list[Measurement]:
    """Returns the curves of one domain of agent runs, cold and warm; the first mark is 0."""
    table = {mode: {mark: Scores() for mark in marks} for mode in tau_folds.Mode}
    for fold in tau_folds.folds(domain, SEEDS):
        service = runs.service(domain, fold, max(marks))
        for mark in marks:
            service.advance(mark)
            memory = remembered(domain.effects, service.log)
            for mode, user, ndcg in runs.tested(domain, fold, memory, {scores.DEFAULT: by(None)}):
                table[mode][mark].add(user, ndcg)
    found: list[Measurement] = []
    for mode, of_mode in table.items():
        users = of_mode[0].users
        curve = {mark: of_mode[mark].column(scores.DEFAULT) for mark in marks}
        detail = f"nDCG@4, {len(users)} queries of {len(set(users))} users"
        for mark, values in curve.items():
            change = values - curve[0]
            found += _rows(
                f"{name} {mode.name.lower()}", mark, detail, float(values.mean()), scores.by_user(change, users)
            )
    return found


def on_reuse(
    corpus: Corpus, scenario: Scenario, seeds: Sequence[int], marks: Sequence[int] = MARKS
) -> list[Measurement]:
    """Returns the curves of simulated reuse, with slates of one case and of four; the first mark is 0."""
    lasting = replace(scenario, decisions=max(marks))
    stages = [stage(corpus, lasting, seed) for seed in seeds]
    found: list[Measurement] = []
    for places in PLACES:
        curve = _curve(stages, places, seeds, marks)
        for mark, by_seed in curve.items():
            change = interval([after - before for after, before in zip(by_seed, curve[0], strict=True)])
            detail = f"reward of the first place, {len(by_seed[0])} queries, {len(seeds)} seeds"
            found += _rows(
                f"reuse, slates of {places}", mark, detail, float(np.mean(by_seed)), (change.low, change.high)
            )
    return found


def _curve(stages: Sequence[Stage], places: int, seeds: Sequence[int], marks: Sequence[int]) -> Curve:
    curve: dict[int, list[Floats]] = {mark: [] for mark in marks}
    for each, seed in zip(stages, seeds, strict=True):
        service = Service(each.stream, each.outcome, each.effects, places, np.random.default_rng([seed, places]))
        for mark in marks:
            service.advance(mark)
            test = Prepared.of(remembered(each.effects, service.log), each.test)
            curve[mark].append(earned(each.world, test.scores(None).astype(np.float64)))
    return curve


def _rows(what: str, mark: int, detail: str, value: float, change: tuple[float, float]) -> Iterator[Measurement]:
    yield Measurement(f"use {what}: after {mark:,} decisions", value, "", detail)
    if mark:
        name = f"use {what}: change by {mark:,} decisions, at best"
        yield Measurement(name, change[1], "", f"paired, {detail}", 0.0, at_least=True, interval=change)
