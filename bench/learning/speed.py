"""Benchmark 5: scoring 64 candidates as the service does, and training many profiles at once or one by one."""

import resource
import sys
import time
from collections.abc import Callable
from statistics import median

import numpy as np

from bench.learning.learner import MEMBERS
from bench.learning.memory import Memory, Scene
from bench.measure import Measurement
from policy import evidence, features
from policy.decide import Policy, score
from policy.examples import Examples
from policy.inputs import CASE, QUERY, factory, inputs_of
from policy.train import Plan, train

CANDIDATES, TOOLS, DIMENSION = 64, 8, 256
USES = 500
"""Decisions remembered while scoring."""
PROFILES, DECISIONS, PLACES = 1_000, 500, 4
BATCH = 256
SAMPLE = 8
"""Profiles trained one by one; the rest is extrapolated."""
SCORING_MS, TIMES = 0.3, 20.0
SCORE = "inputs, head and blend"
ROUNDS = 300
MEGABYTE = 1024 * 1024


def run(profiles: int = PROFILES) -> list[Measurement]:
    """Returns times, ratios and the peak memory."""
    return [*_scoring(), _training(profiles), _memory()]


def _scoring() -> list[Measurement]:
    rng = np.random.default_rng(0)
    memory, scene = _service(rng)
    row = memory.features(scene)
    policy = Policy("q-1", factory(MEMBERS), 0.5)
    inputs, head = inputs_of(row).case, policy.head
    nothing = evidence.Tools(np.zeros((TOOLS, 1)), np.zeros(1), np.zeros(TOOLS))
    parts: dict[str, Callable[[], object]] = {
        "head alone": lambda: head.case_part(inputs).mean(axis=0),
        SCORE: lambda: score(policy, row),
        "evidence of similar runs": lambda: evidence.features(scene.cases, scene.cases, nothing),
        "own record and experience": lambda: memory.features(scene),
    }
    times = {name: _median_ms(act) for name, act in parts.items()}
    detail = f"median of {ROUNDS}, {CANDIDATES} candidates, {MEMBERS} heads, numpy"
    rows = [
        Measurement(f"speed scoring: {name}", ms, "ms", detail, SCORING_MS if name == SCORE else None)
        for name, ms in times.items()
    ]
    whole = sum(ms for name, ms in times.items() if name != "head alone")
    return [*rows, Measurement("speed scoring: the whole, features and score", whole, "ms", detail, SCORING_MS)]


def _median_ms(act: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        act()
        times.append((time.perf_counter() - started) * 1_000)
    return median(times)


def _service(rng: np.random.Generator) -> tuple[Memory, Scene]:
    """Returns a memory of USES decisions, and one query's scene."""
    effects = rng.integers(0, 3, (CANDIDATES, TOOLS)).astype(np.float64)
    memory = Memory(effects)
    for number in range(USES):
        scene = _scene(number, effects, rng)
        memory.learn(scene, tuple(rng.permutation(CANDIDATES)[:PLACES].tolist()), float(rng.random() < 0.5))  # noqa: PLR2004
    return memory, _scene(USES, effects, rng)


def _scene(number: int, effects: np.ndarray, rng: np.random.Generator) -> Scene:
    vector = rng.normal(size=DIMENSION)
    similarity, ranks = rng.random(CANDIDATES), np.arange(1.0, CANDIDATES + 1)
    own = rng.random((CANDIDATES, len(features.OWN))).astype(np.float32)
    cases = evidence.Cases(similarity, ranks, np.ones(CANDIDATES), effects, ranks, ranks)
    peers = rng.random((CANDIDATES, len(evidence.NAMES))).astype(np.float32)
    alone = np.arange(CANDIDATES, dtype=np.int16)
    return Scene(number, vector / np.linalg.norm(vector), np.arange(CANDIDATES), own, cases, peers, alone, alone)


def _training(count: int) -> Measurement:
    rng = np.random.default_rng(1)
    profiles = [_log(rng) for _ in range(count)]
    seeds, start = list(range(count)), factory(1)
    sample = min(SAMPLE, count)
    train(profiles[:1], Plan(steps=5), seeds[:1], start)  # torch warms up
    alone = _seconds(lambda: [train([profile], Plan(), [0], start) for profile in profiles[:sample]]) / sample
    together = _seconds(lambda: train(profiles, Plan(batch=BATCH), seeds, start))
    detail = (
        f"{count:,} profiles x {DECISIONS} decisions, 1 head: {together:.1f} s in batches of"
        f" {BATCH}, {alone * count:.0f} s one by one (extrapolated from {sample}); torch's own number of threads"
    )
    return Measurement("speed training: batched", alone * count / together, "x", detail, TIMES, at_least=True)


def _log(rng: np.random.Generator) -> Examples:
    reward = (rng.random(DECISIONS) < 0.5).astype(np.float32)  # noqa: PLR2004
    return Examples(
        inputs=rng.normal(size=(DECISIONS, PLACES, len(CASE))).astype(np.float32),
        prior=np.zeros((DECISIONS, PLACES), np.float32),
        credit=np.full((DECISIONS, PLACES), 1 / PLACES, np.float32),
        query=rng.normal(size=(DECISIONS, len(QUERY))).astype(np.float32),
        reward=reward,
        weight=np.ones(DECISIONS, np.float32),
        empty=np.zeros(DECISIONS, np.bool_),
        group=np.arange(DECISIONS),
    )


def _seconds(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def _memory() -> Measurement:
    """Returns the most memory that this process ever held."""
    unit = 1 if sys.platform == "darwin" else 1_024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / MEGABYTE
    return Measurement("speed memory: peak resident of the benchmark", peak, "MiB", "the process of all parts so far")
