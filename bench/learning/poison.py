"""Benchmark 4: banks with forged successes or many copies of a failure, served by the service's own policy and rules.

Features, scores, groups, the rules of a slate and the draw are those that serve. What is not here is the write side,
which merges nearly equal runs of one plan before they can be searched; the copies differ just enough not to be merged.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal, get_args

import numpy as np

from bench.learning.banking import Bank, Bools, Corpus, Questions, Search, stored_bank
from bench.learning.claims import Claims
from bench.learning.learner import UNTRAINED
from bench.learning.memory import Memory, Scene
from bench.learning.rules import interval
from bench.measure import Measurement
from policy.decide import DEFAULT, SERVING, Budget, Policy, Trial, decide
from policy.logged import Floats, Ints
from policy.slate import Field, Slate
from retrieval.search.candidates import POOL

CASES, QUERIES, WRONG, FLIPPED = 1_500, 1_000, 0.2, 0.1
JUDGED = 0.5
"""Share of the honest cases with a reward by somebody else; the others only claim one."""
PLACES = 4
WAVE = 25
"""Forged cases aimed at one intent; a larger attack aims at several."""
COPY_REWARD = 0.3
"""Reward that the copies claim: low, but there are many copies."""
COPY_NOISE = 0.2
"""Length of the difference between a copy's vector and its original's."""
SOURCES = 20
"""Honest writers of the bank: sessions, agents, imports."""
USED_FIRST = 0.7
"""Share of decisions on which the backend acts on the first place, and not on another; it names the place."""
SEEDS = (0, 1)
AIM_LOST = 2.0
"""Points of true reward on clean queries that an attack may cost."""

AttackKind = Literal["forged successes", "copies of failures"]
ATTACK_KINDS: tuple[AttackKind, ...] = get_args(AttackKind)


@dataclass(frozen=True, slots=True)
class Attack:
    """The cases that an attacker adds to the bank.

    Attributes:
        share: number of added cases as a share of the honest ones.
        sources: number of colluding writers.
        rewarded: the attacker gives rewards, too; otherwise only the cases' own claims count.
    """

    kind: AttackKind
    share: float
    sources: int = 1
    rewarded: bool = False

    def __str__(self) -> str:
        """Returns it for the table."""
        claim = ", rewards forged as well" if self.rewarded else ""
        return f"{self.share:.1%} {self.kind}, {self.sources} source(s){claim}"


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """A bank with the poison in it, and the queries that meet it: one seed's are the same whatever the attack."""

    claims: Claims
    poison: Bools  # (cases,)
    questions: Questions
    scenes: list[Scene]


@dataclass(frozen=True, slots=True, eq=False)
class Served:
    """Results of a stream by query."""

    taken: Floats  # (n,), share of the places that poison has
    first: Floats  # (n,), 1: the first place
    reward: Floats  # (n,), the true one, expected over which place the backend acts on
    exposed: Bools  # (n,), poison is among the candidates


@dataclass(frozen=True, slots=True)
class Arm:
    """A way to serve: the untrained default or a policy, with or without the rules against swamping."""

    name: str
    policy: Policy | None = None
    rules: bool = True


SERVES, UNRULED, LEARNED = Arm("default"), Arm("default without rules", rules=False), Arm("factory's start", UNTRAINED)
ARMS = (SERVES, UNRULED, LEARNED)
ATTACKS = (
    *(Attack(kind, share, sources) for kind, share, sources in product(ATTACK_KINDS, (0.001, 0.01, 0.05), (1, 10))),
    *(Attack("forged successes", 0.05, sources, rewarded=True) for sources in (1, 10)),
)


def run(corpus: Corpus) -> list[Measurement]:
    """Returns each attack's share of the places and its cost in clean reward, for the default and a policy."""
    clean = _served(corpus, None)
    cost = [without.reward - ruled.reward for without, ruled in zip(clean[UNRULED], clean[SERVES], strict=True)]
    rows = [_row("no attack: reward that the rules cost", cost, "points", _DETAIL)]
    for attack in ATTACKS:
        served = _served(corpus, attack)
        rows += [row for arm in (SERVES, LEARNED) for row in _rows(attack, arm, served, clean)]
    return rows


def _served(corpus: Corpus, attack: Attack | None) -> dict[Arm, list[Served]]:
    streams = [stream(corpus, attack, seed) for seed in SEEDS]
    return {arm: [serve(each, arm, seed) for each, seed in zip(streams, SEEDS, strict=True)] for arm in ARMS}


def stream(corpus: Corpus, attack: Attack | None, seed: int, queries: int = QUERIES) -> Stream:
    """Returns the bank and the queries of a seed; without an attack the same ones."""
    rng = np.random.default_rng(seed)
    parts = np.split(rng.permutation(len(corpus.train.texts)), [CASES, CASES + queries])
    kept, questions, rest = (corpus.train.take(rows) for rows in parts)
    bank = stored_bank(kept, WRONG, corpus.intents, rng)
    reward, proven = (~bank.wrong).astype(np.float64), rng.random(CASES) < JUDGED
    claims = Claims(bank, np.eye(corpus.intents)[bank.answers], reward, proven, rng.integers(0, SOURCES, CASES))
    if attack is not None:
        claims = _poisoned(claims, attack, _forged(attack, rest, corpus.intents, rng))
    scenes = claims.scenes(questions, Search.of(claims.bank).pools(questions, POOL))
    return Stream(claims, np.arange(len(claims.reward)) >= CASES, questions, scenes)


def _poisoned(claims: Claims, attack: Attack, forged: Bank) -> Claims:
    """Returns the bank with the forged cases added last."""
    n, bank = len(forged.texts), claims.bank
    claimed = COPY_REWARD if attack.kind == "copies of failures" else 1.0
    return Claims(
        Bank(
            bank.texts + forged.texts,
            np.vstack([bank.vectors, forged.vectors]),
            np.concatenate([bank.answers, forged.answers]),
            np.concatenate([bank.wrong, forged.wrong]),
        ),
        effects=np.vstack([claims.effects, np.eye(claims.effects.shape[1])[forged.answers]]),
        reward=np.concatenate([claims.reward, np.full(n, claimed)]),
        proven=np.concatenate([claims.proven, np.full(n, attack.rewarded)]),
        source=np.concatenate([claims.source, SOURCES + np.arange(n) % attack.sources]),
    )


def _forged(attack: Attack, rest: Questions, intents: int, rng: np.random.Generator) -> Bank:
    """Returns the attack's cases, every one with a wrong answer: copies of one question, or waves at some intents."""
    count = max(1, round(attack.share * CASES))
    rows = rng.permutation(len(rest.texts))
    if attack.kind == "copies of failures":
        crowded = int((rest.vectors @ rest.vectors.sum(axis=0)).argmax())  # its copies are in the most pools
        original, words = rest.take(np.full(count, crowded)), rest.take(rows[:count]).texts
        texts = tuple(f"{text} {other.split()[0]}" for text, other in zip(original.texts, words, strict=True))
        noise = rng.normal(size=original.vectors.shape) * COPY_NOISE / np.sqrt(original.vectors.shape[1])
        vectors = (original.vectors + noise).astype(np.float32)
        original = replace(original, texts=texts, vectors=vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
        lie: Ints = np.full(count, rng.integers(1, intents))
    else:
        waves = np.arange(count) // WAVE
        enough = np.flatnonzero(np.bincount(rest.intents, minlength=intents) >= WAVE)
        victims = rng.permutation(enough)[: waves[-1] + 1]
        near = [rows[rest.intents[rows] == victim][:WAVE] for victim in victims]
        original, lie = rest.take(np.concatenate(near)[:count]), rng.integers(1, intents, count)[waves]
    return Bank(original.texts, original.vectors, (original.intents + lie) % intents, np.ones(count, np.bool_))


def serve(stream: Stream, arm: Arm, seed: int) -> Served:
    """Serves the stream and returns the results; every reward is known before the next query."""
    n, rng = len(stream.scenes), np.random.default_rng([seed, 1])
    flipped, draws, luck = rng.random(n) < FLIPPED, rng.integers(2**62, size=n), rng.random(n)
    memory = Memory(stream.claims.effects)
    exposed = np.array([stream.poison[scene.case].any() for scene in stream.scenes])
    served = Served(np.zeros(n), np.zeros(n), np.zeros(n), exposed)
    arms = {DEFAULT: None} | ({SERVING: arm.policy} if arm.policy else {})
    for now, scene in enumerate(stream.scenes):
        seen = memory.features(scene)
        field = scene.field(seen) if arm.rules else _unruled(scene.field(seen))
        slate = decide(seen, field, PLACES, Trial(arms, Budget(), int(draws[now]))).slate
        if not slate:
            continue
        works = stream.claims.bank.answers[scene.case[list(slate)]] == stream.questions.intents[now]
        chances = _chances(slate)
        place = int(np.searchsorted(chances.cumsum(), luck[now] * chances.sum(), side="right"))
        memory.learn(scene, (slate[place],), float(works[place] != flipped[now]))
        poison = stream.poison[scene.case[list(slate)]]
        served.taken[now], served.first[now] = poison.sum() / PLACES, poison[0]
        served.reward[now] = works @ chances
    return served


def _unruled(field: Field) -> Field:
    """Returns the field without writers, proofs and repetitions."""
    return replace(field, group=np.arange(len(field.group), dtype=np.int16), source=None, proven=None)


def _chances(slate: Slate) -> Floats:
    """Returns the chance of each place that the backend acts on it; it acts on one."""
    others = len(slate) - 1
    return np.array([USED_FIRST, *[(1 - USED_FIRST) / others] * others]) if others else np.ones(1)


_DETAIL = f"{QUERIES:,} queries, seeds {SEEDS}"


def _rows(
    attack: Attack, arm: Arm, served: dict[Arm, list[Served]], clean: dict[Arm, list[Served]]
) -> list[Measurement]:
    taken = {each: [one.taken for one in served[each]] for each in ARMS}
    lost = {each: _lost(clean[each], served[each]) for each in ARMS}
    what = f"{attack}, {arm.name}"
    return [
        _row(f"{what}: share of places taken", taken[arm], "%", f"{_exposure(served[arm])}; {_compared(arm, taken)}"),
        replace(_row(f"{what}: clean reward lost", lost[arm], "points", _compared(arm, lost)), aim=AIM_LOST),
    ]


def _exposure(served: Sequence[Served]) -> str:
    exposed, taken, first = (
        np.concatenate([getattr(one, name) for one in served]) for name in ("exposed", "taken", "first")
    )
    where = taken[exposed].mean() if exposed.any() else 0.0
    return f"{where:.1%} where it is among the candidates ({exposed.mean():.0%}); {first.mean():.2%} of first places"


def _lost(clean: Sequence[Served], served: Sequence[Served]) -> list[Floats]:
    return [before.reward - after.reward for before, after in zip(clean, served, strict=True)]


def _compared(arm: Arm, values: dict[Arm, list[Floats]]) -> str:
    """Returns the value without the rules, with a note if they do not help against a harm."""
    if arm is not SERVES:
        return _DETAIL
    harm = interval(values[UNRULED])
    saved = interval([without - ruled for without, ruled in zip(values[UNRULED], values[SERVES], strict=True)])
    helpless = ", THE RULES DO NOT HELP" if harm.low > 0 >= saved.low else ""
    return f"without the rules {100 * harm.estimate:.2f}{helpless}; {_DETAIL}"


def _row(name: str, by_seed: Sequence[Floats], unit: str, detail: str) -> Measurement:
    bounds = interval([100 * values for values in by_seed])
    return Measurement(f"poison {name}", bounds.estimate, unit, detail, interval=(bounds.low, bounds.high))
