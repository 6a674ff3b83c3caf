"""Benchmark 4: banks with forged successes or with many copies of a failure, and the rules that bound the harm."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np

from app.bench.learning.banking import PRIOR, Bank, Bools, Corpus, Questions, Search, stored_bank
from app.bench.measure import Measurement
from policy.logged import Floats, Ints

CASES, QUERIES, WRONG, FLIPPED = 1_500, 2_000, 0.2, 0.1
PLACES, POOL, DEEP = 4, 32, 128
WAVE = 25
"""Forged cases aimed at one intent; a larger attack aims at several."""
COPY_REWARD = 0.3
"""What the copies claim: low, and there are many."""
SOURCES = 20
"""Honest writers of the bank: sessions, agents, imports."""
USED_FIRST = 0.7
"""How often the backend acts on the first place; else on one of the others."""
COPY_NOISE = 0.2
"""Length of what sets a copy's vector apart from its original's."""

SAME = 0.95
"""Similarity from which two cases of one answer are near-duplicates."""
WITNESS = 0.6
"""Similarity from which another source's success with the same answer vouches for a case."""
UNPROVEN_PLACES = 1
"""Places of a slate that unproven cases may take, as long as there are proven ones."""
SUCCESS = 0.5
"""Reward from which a run calls itself a success: what needs proof."""
SOURCE_PLACES = 2
"""Places of a slate that one source may take."""
FREQUENT, LOW = 3, 0.35
"""Reuses from which a near-duplicate group with a mean reward below LOW is left out."""

Kind = Literal["forged successes", "targeted forged successes", "copies of failures"]


@dataclass(frozen=True, slots=True)
class Attack:
    """What was slipped into the bank: ``share`` of its honest cases; by one source, unless ``sources`` says more."""

    kind: Kind
    share: float
    sources: int = 1


@dataclass(frozen=True, slots=True)
class Rules:
    """The protections, each for itself.

    Attributes:
        probation: until a case has an independent success its own success counts for nothing (its failure does),
            and cases of that kind take UNPROVEN_PLACES of a slate.
        one_per_group: near-duplicates take one place of the pool and of the slate, and share their record.
        source_bound: no source takes more than SOURCE_PLACES of a slate.
        penalty: what was reused often at a low reward is left out.
    """

    probation: bool = False
    one_per_group: bool = False
    source_bound: bool = False
    penalty: bool = False


NONE, ALL = Rules(), Rules(probation=True, one_per_group=True, source_bound=True, penalty=True)


@dataclass(frozen=True, slots=True, eq=False)
class Stock:
    """A bank with who wrote each case and what the run's own reward was; poison comes last."""

    bank: Bank
    source: Ints  # (cases,)
    reward: Floats  # (cases,), 0 to 1, as claimed
    poison: Bools  # (cases,)

    def groups(self) -> Ints:
        """Returns each case's near-duplicate group, (cases,): the oldest case that it repeats, or itself."""
        near = (self.bank.vectors @ self.bank.vectors.T >= SAME) & (
            self.bank.answers[:, None] == self.bank.answers[None, :]
        )
        leader = np.arange(len(near))
        for case in range(1, len(near)):
            older = np.flatnonzero(near[case, :case] & (leader[:case] == np.arange(case)))
            leader[case] = older[0] if len(older) else case
        return leader

    def witnessed(self) -> Bools:
        """Returns whether another source had a success with the same answer in a similar state, (cases,)."""
        vouches = self.bank.vectors @ self.bank.vectors.T >= WITNESS
        vouches &= self.bank.answers[:, None] == self.bank.answers[None, :]
        vouches &= self.source[:, None] != self.source[None, :]
        return np.asarray((vouches & (self.reward >= SUCCESS)[None, :]).any(axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class Served:
    """What a stream was served; rows are queries. Streams of one seed have the same queries, whatever the attack."""

    poison: Bools  # (n, PLACES), the place holds poison
    works: Bools  # (n,), the first place helps
    attacked: Bools  # (n,), poison is among the best POOL by RRF

    @property
    def places(self) -> float:
        """Returns the share of all places that poison took."""
        return float(self.poison.mean())

    @property
    def first_places(self) -> float:
        """Returns the share of first places that poison took."""
        return float(self.poison[:, 0].mean())

    @property
    def reward(self) -> float:
        """Returns the true reward."""
        return float(self.works.mean())


def stock(corpus: Corpus, attack: Attack | None, rng: np.random.Generator) -> tuple[Stock, Questions]:
    """Returns a bank with the poison in it, and a stream of queries; without an attack the same bank and stream."""
    shuffled = rng.permutation(len(corpus.train.texts))
    parts = np.split(shuffled, [CASES, CASES + QUERIES])
    kept, asked, rest = (corpus.train.take(rows) for rows in parts)
    bank = stored_bank(kept, WRONG, corpus.intents, rng)
    source = rng.integers(0, SOURCES, CASES)
    honest = Stock(bank, source, (~bank.wrong).astype(np.float64), np.zeros(CASES, dtype=bool))
    return (honest if attack is None else poisoned(honest, attack, rest, corpus.intents, rng)), asked


def poisoned(honest: Stock, attack: Attack, rest: Questions, intents: int, rng: np.random.Generator) -> Stock:
    """Returns the bank with the attack's cases added last; every one stores a wrong answer."""
    count = max(1, round(attack.share * len(honest.source)))
    rows = rng.permutation(len(rest.texts))
    waves = np.arange(count) // WAVE
    if attack.kind == "copies of failures":
        chosen = np.full(count, _most_central(rest))
    elif attack.kind == "forged successes":
        chosen = rows[:count]
    else:
        victims = rng.permutation(intents)[waves]
        chosen = np.array([rows[rest.intents[rows] == v][w] for v, w in zip(victims, _within(waves), strict=True)])
    original = rest.take(chosen)
    vectors, claimed = original.vectors, 1.0
    if attack.kind == "copies of failures":
        noise = rng.normal(size=vectors.shape) * COPY_NOISE / np.sqrt(vectors.shape[1])
        vectors = (vectors + noise).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        claimed = COPY_REWARD
    lie = rng.integers(1, intents, count)
    told = {"forged successes": lie, "targeted forged successes": lie[waves], "copies of failures": lie[:1]}[
        attack.kind
    ]
    answers = (original.intents + told) % intents
    bank = Bank(
        (*honest.bank.texts, *original.texts),
        np.vstack([honest.bank.vectors, vectors]),
        np.concatenate([honest.bank.answers, answers]),
        np.concatenate([honest.bank.wrong, np.ones(count, dtype=bool)]),
    )
    return Stock(
        bank,
        np.concatenate([honest.source, SOURCES + np.arange(count) % attack.sources]),
        np.concatenate([honest.reward, np.full(count, claimed)]),
        np.concatenate([honest.poison, np.ones(count, dtype=bool)]),
    )


def _most_central(questions: Questions) -> int:
    """Returns the question nearest to all the others: the copies of it crowd the most pools."""
    return int((questions.vectors @ questions.vectors.sum(axis=0)).argmax())


def _within(waves: Ints) -> Ints:
    """Returns each element's number within its run of equal values."""
    return np.arange(len(waves)) - np.searchsorted(waves, waves)


@dataclass(frozen=True, slots=True, eq=False)
class _Records:
    """What is known of each case while the stream is served; near-duplicates share, where the rules say so."""

    key: Ints  # (cases,), where a case's record is kept
    claimed: Floats  # (cases,), its own reward
    witnessed: Bools  # (cases,)
    total: Floats  # (cases,), by key: sum of the rewards of its reuse
    count: Floats  # (cases,), by key

    def proven(self, cases: Ints) -> Bools:
        """Returns whether each has an independent success: a witness, or more good reuses than bad."""
        key = self.key[cases]
        return np.asarray(self.witnessed[cases] | (self.total[key] > self.count[key] / 2))

    def posterior(self, cases: Ints, trusted: Bools) -> Floats:
        """Returns each case's expected reward; its own success counts where it is trusted."""
        key, claimed = self.key[cases], self.claimed[cases]
        weight = (trusted | (claimed < SUCCESS)).astype(np.float64)
        return np.asarray((PRIOR + weight * claimed + self.total[key]) / (2 * PRIOR + weight + self.count[key]))

    def hopeless(self, cases: Ints) -> Bools:
        """Returns whether each was reused often and to little use."""
        key = self.key[cases]
        return np.asarray((self.count[key] >= FREQUENT) & (self.total[key] < LOW * self.count[key]))

    def learn(self, case: int, reward: float) -> None:
        """Adds one reuse."""
        self.total[self.key[case]] += reward
        self.count[self.key[case]] += 1


def measure(corpus: Corpus, attack: Attack | None, rules: Rules, seed: int) -> Served:
    """Returns what happens when the untrained default serves the stream from the bank under these rules."""
    rng = np.random.default_rng(seed)
    stocked, asked = stock(corpus, attack, rng)
    return serve(stocked, asked, rules, np.random.default_rng(seed))


def serve(stocked: Stock, asked: Questions, rules: Rules, rng: np.random.Generator) -> Served:
    """Returns one stream as it was served; every reward is known before the next query."""
    cases = len(stocked.source)
    group = stocked.groups() if rules.one_per_group else np.arange(cases)
    records = _Records(group, stocked.reward, stocked.witnessed(), np.zeros(cases), np.zeros(cases))
    pools = Search.of(stocked.bank).pools(asked, DEEP)
    luck, flipped = rng.random(len(asked.texts)), rng.random(len(asked.texts)) < FLIPPED
    n = len(asked.texts)
    served = Served(np.zeros((n, PLACES), np.bool_), np.zeros(n, np.bool_), np.zeros(n, np.bool_))
    for now in range(n):
        pool, rrf = _pool(pools.case[now], pools.rrf[now], group)
        slate = _slate(stocked, rules, records, pool, rrf)
        used = slate[0 if luck[now] < USED_FIRST else int(now % len(slate))]
        helped = stocked.bank.answers[[slate[0], used]] == asked.intents[now]
        records.learn(used, float(helped[1] != flipped[now]))
        served.poison[now, : len(slate)] = stocked.poison[slate]
        served.works[now] = helped[0]
        served.attacked[now] = stocked.poison[pools.case[now, :POOL]].any()
    return served


def _pool(case: Ints, rrf: Floats, group: Ints) -> tuple[Ints, Floats]:
    """Returns the first POOL cases, one of each group."""
    first = np.sort(np.unique(group[case], return_index=True)[1])[:POOL]
    return case[first], rrf[first]


def _slate(stocked: Stock, rules: Rules, records: _Records, pool: Ints, rrf: Floats) -> list[int]:
    """Returns the slate, at most PLACES cases."""
    if rules.penalty and not (hopeless := records.hopeless(pool)).all():
        pool, rrf = pool[~hopeless], rrf[~hopeless]
    proven = records.proven(pool) if rules.probation else np.ones(len(pool), dtype=bool)
    order = np.argsort(-rrf * records.posterior(pool, proven), kind="stable")
    bound = SOURCE_PLACES if rules.source_bound else PLACES
    return _bounded(pool[order].tolist(), dict(zip(pool.tolist(), proven.tolist(), strict=True)), stocked.source, bound)


def _bounded(ordered: Sequence[int], proven: Mapping[int, bool], source: Ints, bound: int) -> list[int]:
    """Returns the first PLACES that may stand together; unproven cases beyond their share only fill empty places."""
    slate: list[int] = []
    for share in (UNPROVEN_PLACES, PLACES):
        for case in ordered:
            unproven = sum(not proven[taken] for taken in slate)
            free = case not in slate and len(slate) < PLACES and _places(slate, source, case) < bound
            if free and (proven[case] or unproven < share):
                slate.append(case)
    return slate


def _places(slate: Sequence[int], source: Ints, case: int) -> int:
    """Returns how many places the case's source has already."""
    return int((source[list(slate)] == source[case]).sum())


ATTACKS = (
    *(Attack(kind, share) for kind in get_args(Kind) for share in (0.001, 0.01, 0.05)),
    Attack("targeted forged successes", 0.05, sources=10),
)
EACH = {
    "none": NONE,
    "probation": replace(NONE, probation=True),
    "one per group": replace(NONE, one_per_group=True),
    "source bound": replace(NONE, source_bound=True),
    "penalty": replace(NONE, penalty=True),
    "all": ALL,
}

SEEDS = (0, 1)
AIM_LOST = 2.0
"""Points of true reward on clean queries that an attack may cost with all rules on."""


def run(corpus: Corpus) -> list[Measurement]:
    """Returns each attack's share of the slates, and the reward lost, without and with all rules."""
    found: list[Measurement] = []
    clean = {
        name: [measure(corpus, None, rules, seed) for seed in SEEDS] for name, rules in (("no", NONE), ("all", ALL))
    }
    cost = 100 * (_mean(clean["no"]) - _mean(clean["all"]))
    found.append(Measurement("poison none: reward that the rules cost", cost, "points", _DETAIL))
    for attack in ATTACKS:
        for name, rules in (("no", NONE), ("all", ALL)):
            served = [measure(corpus, attack, rules, seed) for seed in SEEDS]
            what = f"poison {attack.share:.1%} {attack.kind}, {attack.sources} source(s), {name} rules"
            lost = 100 * (_mean(clean[name]) - _mean(served))
            taken = 100 * float(np.mean([each.places for each in served]))
            first = 100 * float(np.mean([each.first_places for each in served]))
            found.append(
                Measurement(f"{what}: share of places taken", taken, "%", f"first places {first:.2f} %; {_DETAIL}")
            )
            aim = AIM_LOST if rules is ALL else None
            found.append(Measurement(f"{what}: reward lost", lost, "points", _DETAIL, aim))
    return found


_DETAIL = f"rules of the benchmark, outside of the service; {QUERIES:,} queries, seeds {SEEDS}"


def _mean(served: Sequence[Served]) -> float:
    return float(np.mean([each.reward for each in served]))
