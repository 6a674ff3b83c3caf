"""Benchmark 2: real agent runs, the product's policy from full labels and from logged outcomes, cold and warm."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.bench.learning import tau
from app.bench.learning.learner import UNTRAINED, Outcome, Recipe, Service, remembered, served
from app.bench.learning.memory import Memory, Scene
from app.bench.measure import Measurement
from policy import evidence, features
from policy.decide import Policy, score
from policy.examples import Examples
from policy.inputs import case_inputs, prior, query_inputs
from policy.logged import Floats, Ints
from policy.slate import Field, Slate, choose, order
from policy.train import Plan

SEEDS = (0, 1, 2)
FEW, MANY = 500, 2_000
BASE, GAIN = 0.15, 0.7
"""The chance of success of a slate: BASE + GAIN * mean utility of its places."""
RIDGES = (100.0, 1_000.0, 10_000.0)
RESAMPLES = 2_000
COLD_AIMS: Mapping[str, float] = {"retail": 0.58, "airline": 0.34}
DEFAULT, FACTORY = "untrained default", "factory's start, nothing learned"
LABELS, LOGGED = "THE POLICY (from labels)", "THE POLICY (from outcomes)"
FIXED = frozenset({"random", "vector", "keyword", "rrf", "rrf + success filter", "plan consensus + success filter"})
LABEL_PLACES = 16
"""How many of a question's candidates, the default's first, are labels: all would take twice as long."""
LABEL_PLAN = Plan(query_ridge=30.0, steps=150)
OWN = len(features.OWN)


@dataclass(slots=True)
class Scores:
    """nDCG@4 by policy, and whose query each was; equal lengths."""

    users: list[str]
    by_policy: dict[str, list[float]]

    @classmethod
    def empty(cls) -> "Scores":
        """Returns no scores."""
        return cls([], {})

    def add(self, reached: "Reached") -> None:
        """Adds one query."""
        self.users.append(reached.user)
        for name, value in reached.ndcg.items():
            self.by_policy.setdefault(name, []).append(value)

    def ordered(self) -> list[str]:
        """Returns the policies, the best last."""
        return sorted(self.by_policy, key=lambda name: float(np.mean(self.by_policy[name])))

    def column(self, name: str) -> Floats:
        """Returns one policy's nDCG of each query."""
        return np.array(self.by_policy[name])


@dataclass(frozen=True, slots=True)
class Reached:
    """nDCG@4 of every policy on one user's query."""

    user: str
    ndcg: Mapping[str, float]


Policies = Mapping[str, Policy | None]
"""By name; None is the untrained default."""

Table = dict[tuple[tau.Mode, int], Scores]
"""By mode and logged decisions; 0: before any."""


def run(name: str, domain: tau.Domain, say: Callable[[str], object] = print) -> list[Measurement]:
    """Returns the table of one domain."""
    folds = list(tau.folds(domain, SEEDS))
    say("full labels")
    labelled = from_labels(domain, folds)
    say("logged outcomes")
    logged = from_logs(domain, folds)
    rows: list[Measurement] = []
    for mode in tau.Mode:
        rows += _label_rows(name, mode, labelled[mode, 0])
    for decisions in (FEW, MANY):
        for mode in tau.Mode:
            rows += _log_rows(name, mode, decisions, logged[mode, decisions])
    return rows


def scene(domain: tau.Domain, question: tau.Question) -> Scene:
    """Returns the question as the product sees it."""
    own, runs = question.known[:, :OWN], question.candidates

    def column(name: str) -> Floats:
        return own[:, features.OWN.index(name)].astype(np.float64)

    cases = evidence.Cases(
        similarity=column("similarity"),
        keyword_rank=column("keyword_rank"),
        reward=column("reward"),
        effects=domain.effects[runs],
        steps=domain.steps[runs],
        errors=domain.errors[runs],
    )
    return Scene(question.run, domain.vectors[question.run], runs, own, cases, question.evidence)


def labels(domain: tau.Domain, questions: Sequence[tau.Question]) -> Examples:
    """Returns an example for each of the first LABEL_PLACES candidates of each question, its utility as reward."""
    nothing = Memory(domain.effects)
    seen = [(nothing.features(scene(domain, asked)), asked) for asked in questions]
    sizes = [min(LABEL_PLACES, len(asked.utility)) for _, asked in seen]
    n = sum(sizes)
    return Examples(
        inputs=np.concatenate([case_inputs(row)[:LABEL_PLACES] for row, _ in seen])[:, None],
        prior=np.concatenate([prior(row)[:LABEL_PLACES] for row, _ in seen])[:, None],
        credit=np.ones((n, 1), np.float32),
        query=np.repeat(np.concatenate([query_inputs(row) for row, _ in seen]), sizes, axis=0),
        reward=np.concatenate([asked.utility[:LABEL_PLACES] for _, asked in seen]).astype(np.float32),
        weight=np.ones(n, np.float32),
        group=np.repeat([asked.run for _, asked in seen], sizes).astype(np.int64),
    )


def from_labels(domain: tau.Domain, folds: Sequence[tau.Fold]) -> Table:
    """Returns what the policy reaches that saw the utility of the training users' candidates, ridge chosen on them."""
    table: Table = {(mode, 0): Scores.empty() for mode in tau.Mode}
    for fold in folds:
        asked = asked_in_training(fold)
        ridge = _ridge(domain, asked, fold.seed)
        learned = _learned(labels(domain, asked), ridge, fold.seed)
        arms = {DEFAULT: None, FACTORY: UNTRAINED, LABELS: learned}
        for mode, reached in tested(domain, fold, Memory(domain.effects), arms):
            table[mode, 0].add(reached)
    return table


def asked_in_training(fold: tau.Fold) -> list[tau.Question]:
    """Returns the training users' questions, of both modes."""
    return [question for mode in tau.Mode for question in fold.train[mode]]


def _learned(rows: Examples, ridge: float, seed: int) -> Policy:
    (policy,) = Recipe(members=1, plan=replace(LABEL_PLAN, ridge=ridge)).fit([rows], [seed])
    return policy


def _ridge(domain: tau.Domain, asked: Sequence[tau.Question], seed: int) -> float:
    """Returns the ridge that serves held-out training users best, by nDCG, in two halves of them."""
    users = np.random.default_rng([seed, 3]).permutation(sorted({question.user for question in asked}))
    nothing = Memory(domain.effects)
    reached = np.zeros(len(RIDGES))
    for half in (set(users[::2].tolist()), set(users[1::2].tolist())):
        rows = labels(domain, [question for question in asked if question.user in half])
        others = [question for question in asked if question.user not in half and question.ideal > 0]
        for place, ridge in enumerate(RIDGES):
            policy = _learned(rows, ridge, seed)
            reached[place] += sum(_reached(domain, nothing, policy, question) for question in others)
    return RIDGES[int(reached.argmax())]


def _reached(domain: tau.Domain, memory: Memory, policy: Policy | None, question: tau.Question) -> float:
    return _ndcg(policy, question, memory.features(scene(domain, question)))


def _ndcg(policy: Policy | None, question: tau.Question, row: features.Features) -> float:
    """Returns nDCG@4 of the slate that the policy serves."""
    return tau.ndcg(question.utility, _slate(policy, question, row), question.ideal)


def _slate(policy: Policy | None, question: tau.Question, row: features.Features) -> Ints:
    return np.array(_served(policy, question, row), dtype=np.int64)


def _served(policy: Policy | None, question: tau.Question, row: features.Features) -> Slate:
    n = len(question.utility)
    field = Field(np.arange(n, dtype=np.int16), question.failed, np.ones(n, dtype=np.bool_))
    return choose(field, order(field, score(policy, row).total), tau.PLACES)


def from_logs(domain: tau.Domain, folds: Sequence[tau.Fold]) -> Table:
    """Returns what the policy reaches that saw logged outcomes of slates alone, after FEW and MANY decisions."""
    table: Table = {(mode, decisions): Scores.empty() for mode in tau.Mode for decisions in (FEW, MANY)}
    services = [service(domain, fold, MANY) for fold in folds]
    for decisions, policies in served(services, Recipe(), (FEW, MANY)).items():
        for fold, stream, policy in zip(folds, services, policies, strict=True):
            memory = remembered(domain.effects, stream.log[:decisions])
            arms = {DEFAULT: None, FACTORY: UNTRAINED, LOGGED: policy}
            for mode, reached in tested(domain, fold, memory, arms):
                table[mode, decisions].add(reached)
    return table


def service(domain: tau.Domain, fold: tau.Fold, decisions: int) -> Service:
    """Returns the stream of a fold: the training users' questions, drawn with replacement."""
    rng = np.random.default_rng([fold.seed, fold.number, 4])
    asked = asked_in_training(fold)
    drawn = [asked[row] for row in rng.integers(0, len(asked), decisions)]
    scenes = [scene(domain, question) for question in drawn]
    return Service(scenes, _outcome(drawn, rng.spawn(1)[0]), domain.effects, tau.PLACES, rng)


def _outcome(drawn: Sequence[tau.Question], rng: np.random.Generator) -> Outcome:
    def outcome(now: int, slate: Slate) -> float:
        helped = drawn[now].utility[list(slate)].sum() / tau.PLACES
        return float(rng.random() < BASE + GAIN * helped)

    return outcome


def tested(
    domain: tau.Domain, fold: tau.Fold, memory: Memory, policies: Policies
) -> Iterable[tuple[tau.Mode, Reached]]:
    """Yields what the policies and the fixed rules reach on each question of the fold's test users."""
    for mode, questions in fold.test.items():
        for question in questions:
            if question.ideal > 0:
                row = memory.features(scene(domain, question))
                found = {name: _ndcg(policy, question, row) for name, policy in policies.items()}
                best = np.argsort(-question.utility, kind="stable")[: tau.PLACES]
                found["oracle among the candidates"] = tau.ndcg(question.utility, best, question.ideal)
                yield mode, Reached(question.user, dict(question.fixed) | {"none": 0.0} | found)


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two policies to be compared on the same queries, what to call the second, and whether that is an aim."""

    one: str
    other: str
    called: str
    aim: float | None = None
    proven: bool = False


def _label_rows(name: str, mode: tau.Mode, scores: Scores) -> list[Measurement]:
    what, best = f"{name} {mode.name.lower()}, full labels", _best(scores)
    aim = COLD_AIMS.get(name) if mode is tau.Mode.COLD else None
    pairs = [
        _Pair(LABELS, best, f"best fixed rule ({best})", 0.0),
        _Pair(LABELS, DEFAULT, DEFAULT),
        _Pair(LABELS, FACTORY, "factory's start: learned"),
    ]
    return [
        *(
            _row(f"{what}: {arm}", scores.column(arm), scores, aim if arm == LABELS else None)
            for arm in scores.ordered()
        ),
        *(_difference(what, scores, pair) for pair in pairs),
    ]


def _log_rows(name: str, mode: tau.Mode, decisions: int, scores: Scores) -> list[Measurement]:
    what, best, last = f"{name} {mode.name.lower()}, {decisions:,} logged", _best(scores), decisions == MANY
    pairs = [
        _Pair(LOGGED, best, f"best fixed rule ({best})", 0.0 if last else None),
        _Pair(LOGGED, DEFAULT, DEFAULT, 0.0, proven=last),
        _Pair(LOGGED, FACTORY, "factory's start: learned"),
    ]
    return [
        *(_row(f"{what}: {arm}", scores.column(arm), scores) for arm in (DEFAULT, FACTORY, LOGGED)),
        *(_difference(what, scores, pair) for pair in pairs),
    ]


def _best(scores: Scores) -> str:
    """Returns the fixed rule that is best on these very queries: the hardest to match."""
    return [name for name in scores.ordered() if name in FIXED][-1]


def _difference(what: str, scores: Scores, pair: _Pair) -> Measurement:
    values = scores.column(pair.one) - scores.column(pair.other)
    found = _row(f"{what}: policy - {pair.called}", values, scores, pair.aim)
    return replace(found, proven=pair.proven, detail=f"paired by user; {found.detail}")


def _row(name: str, values: Floats, scores: Scores, aim: float | None = None) -> Measurement:
    detail = f"nDCG@4, {len(values)} queries of {len(set(scores.users))} users, 5 folds x seeds {SEEDS}"
    interval = by_user(values, scores.users)
    return Measurement(f"runs {name}", float(values.mean()), "", detail, aim, at_least=True, interval=interval)


def by_user(values: Floats, users: Iterable[str], seed: int = 0) -> tuple[float, float]:
    """Returns the 95 % interval of the mean, by a bootstrap over users with all their queries of all seeds."""
    _, place = np.unique(list(users), return_inverse=True)
    total, count = np.bincount(place, values), np.bincount(place)
    drawn = np.random.default_rng(seed).multinomial(len(count), np.full(len(count), 1 / len(count)), RESAMPLES)
    low, high = np.quantile((drawn @ total) / (drawn @ count), [0.025, 0.975])
    return float(low), float(high)
