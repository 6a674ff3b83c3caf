"""Benchmark 2: real agent runs, the product's policy from full labels and from logged outcomes, cold and warm."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from bench.learning import baselines, scores, tau, tau_folds
from bench.learning.baselines import Order, by
from bench.learning.learner import (
    PLAIN,
    UNTRAINED,
    Recipe,
    RewardOf,
    Service,
    examples,
    permuted,
    query_only,
    remembered,
    served,
)
from bench.learning.memory import Memory, Scene
from bench.learning.scores import FEW, MANY, Scores
from bench.learning.worth import PLACES
from bench.measure import Measurement
from policy import evidence, features
from policy.decide import Policy
from policy.examples import Examples
from policy.inputs import inputs_of
from policy.logged import Floats
from policy.slate import Slate, choose, order
from policy.train import STAY, Plan

SEEDS = (0, 1, 2)
CONTROL_SEED = 0
"""The seed whose five folds the controls are measured on."""
BASE, GAIN = 0.15, 0.7
"""Chance of success of a slate: BASE + GAIN * mean utility of its places."""
RIDGES = (30.0, 300.0, 3_000.0, STAY)
LABEL_PLACES = 16
"""Number of a question's first candidates that become labels; all would take twice the time."""
LABEL_PLAN = Plan(query_ridge=30.0, steps=150)
OWN = len(features.OWN)

Table = dict[tuple[tau_folds.Mode, int], Scores]
"""Scores by mode and number of logged decisions; 0: before any."""


@dataclass(frozen=True, slots=True, eq=False)
class SeenQuestion:
    """A question as the product sees it with a memory."""

    question: tau_folds.Question
    scene: Scene
    seen: features.Features

    @classmethod
    def of(cls, domain: tau.Domain, question: tau_folds.Question, memory: Memory | None = None) -> "SeenQuestion":
        """Returns the question with the features of the memory, or of an empty one."""
        candidates = scene(domain, question)
        return cls(question, candidates, (memory or Memory(domain.effects)).features(candidates))

    def reached(self, order_of: Order) -> float:
        """Returns nDCG@4 of the slate that this order serves."""
        field = self.scene.field(self.seen)
        slate = choose(field, order(field, order_of(self.question, self.seen)), PLACES)
        return self.question.worth.ndcg(np.array(slate, dtype=np.int64))


def run(name: str, domain: tau.Domain, say: Callable[[str], object] = print) -> list[Measurement]:
    """Returns the table of one domain."""
    folds = list(tau_folds.folds(domain, SEEDS))
    say("full labels")
    labelled = from_labels(domain, folds)
    say("logged outcomes")
    logged, controls = from_logs(domain, folds)
    rows = [row for mode in tau_folds.Mode for row in scores.label_rows(name, mode, labelled[mode, 0])]
    for decisions, mode in product((FEW, MANY), tau_folds.Mode):
        rows += scores.log_rows(name, mode, decisions, logged[mode, decisions])
    return [*_with(rows, f"5 folds x seeds {SEEDS}"), *_control_rows(name, controls)]


def _control_rows(name: str, controls: Table) -> list[Measurement]:
    rows = [row for mode in tau_folds.Mode for row in scores.control_rows(name, mode, controls[mode, MANY])]
    return _with(rows, f"5 folds x seed {CONTROL_SEED}")


def _with(rows: Sequence[Measurement], made_of: str) -> list[Measurement]:
    return [replace(row, detail=f"{row.detail}, {made_of}") for row in rows]


def scene(domain: tau.Domain, question: tau_folds.Question) -> Scene:
    """Returns the question as the product sees it; every run is its own source and group."""
    own, runs = question.known[:, :OWN], question.candidates
    alone = np.arange(len(runs), dtype=np.int16)

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
    return Scene(question.run, domain.vectors[question.run], runs, own, cases, question.evidence, alone, alone)


def labels(questions: Sequence[SeenQuestion]) -> Examples:
    """Returns an example for each of the first LABEL_PLACES candidates of each question, its utility as reward."""
    sizes = _sizes(questions)
    n, seen = sum(sizes), [inputs_of(each.seen) for each in questions]
    return Examples(
        inputs=np.concatenate([each.case[:LABEL_PLACES] for each in seen])[:, None],
        prior=np.concatenate([each.prior[:LABEL_PLACES] for each in seen])[:, None],
        credit=np.ones((n, 1), np.float32),
        query=np.repeat(np.concatenate([each.query for each in seen]), sizes, axis=0),
        reward=np.concatenate([each.question.utility[:LABEL_PLACES] for each in questions]).astype(np.float32),
        weight=np.ones(n, np.float32),
        empty=np.zeros(n, np.bool_),
        group=np.repeat([each.question.run for each in questions], sizes).astype(np.int64),
    )


def _sizes(questions: Sequence[SeenQuestion]) -> list[int]:
    return [min(LABEL_PLACES, len(each.question.utility)) for each in questions]


def from_labels(domain: tau.Domain, folds: Sequence[tau_folds.Fold]) -> Table:
    """Returns the scores of a policy trained on the training users' utilities, with a ridge chosen on them."""
    table: Table = {(mode, 0): Scores() for mode in tau_folds.Mode}
    for fold in folds:
        questions = [SeenQuestion.of(domain, question) for question in training_questions(fold)]
        rows = labels(questions)
        learned = _learned(rows, _ridge(questions, rows, fold.seed), fold.seed)
        arms = _arms(scores.LABELS, learned)
        for mode, user, ndcg in tested(domain, fold, Memory(domain.effects), arms):
            table[mode, 0].add(user, ndcg)
    return table


def _arms(name: str, policy: Policy) -> dict[str, Order]:
    return {scores.DEFAULT: by(None), scores.FACTORY: by(UNTRAINED), name: by(policy), **baselines.FIXED}


def training_questions(fold: tau_folds.Fold) -> list[tau_folds.Question]:
    """Returns the training users' questions, of both modes."""
    return [question for mode in tau_folds.Mode for question in fold.train[mode]]


def _learned(rows: Examples, ridge: float, seed: int) -> Policy:
    (policy,) = Recipe(members=1, plan=replace(LABEL_PLAN, ridge=ridge)).fit([rows], [seed])
    return policy


def _ridge(questions: Sequence[SeenQuestion], rows: Examples, seed: int) -> float:
    """Returns the ridge that serves held-out training users best, by nDCG, in two halves of them."""
    users = np.random.default_rng([seed, 3]).permutation(sorted({each.question.user for each in questions}))
    whose = np.repeat([each.question.user for each in questions], _sizes(questions))
    reached = np.zeros(len(RIDGES))
    for half in (users[::2], users[1::2]):
        mine = rows.take(np.isin(whose, half))
        others = [each for each in questions if each.question.user not in half and each.question.ideal > 0]
        for place, ridge in enumerate(RIDGES):
            policy = by(_learned(mine, ridge, seed))
            reached[place] += sum(each.reached(policy) for each in others)
    return RIDGES[int(reached.argmax())]


def from_logs(domain: tau.Domain, folds: Sequence[tau_folds.Fold]) -> tuple[Table, Table]:
    """Returns the scores of a policy trained on FEW and MANY logged outcomes, and those of the controls.

    The controls are trained on MANY decisions of the folds of CONTROL_SEED.
    """
    table: Table = {(mode, decisions): Scores() for mode in tau_folds.Mode for decisions in (FEW, MANY)}
    services = [service(domain, fold, MANY) for fold in folds]
    for decisions, policies in served(services, Recipe(), (FEW, MANY)).items():
        for fold, stream, policy in zip(folds, services, policies, strict=True):
            log = stream.log[:decisions]
            arms = _arms(scores.LOGGED, policy)
            for mode, user, ndcg in tested(domain, fold, remembered(domain.effects, log), arms):
                table[mode, decisions].add(user, ndcg)
    first = [pair for pair in zip(folds, services, strict=True) if pair[0].seed == CONTROL_SEED]
    return table, _controls(domain, [fold for fold, _ in first], [stream for _, stream in first])


def _controls(domain: tau.Domain, folds: Sequence[tau_folds.Fold], services: Sequence[Service]) -> Table:
    """Returns the scores with shuffled rewards, and with inputs of the query alone."""
    table: Table = {(mode, MANY): Scores() for mode in tau_folds.Mode}
    seeds = range(len(folds))
    shuffled = [
        permuted(stream.log, domain.effects, np.random.default_rng([fold.seed, fold.number, 2]))
        for fold, stream in zip(folds, services, strict=True)
    ]
    blind = Recipe().fit([examples(log, PLACES) for log in shuffled], seeds)
    asking = PLAIN.fit([query_only(examples(stream.log, PLACES)) for stream in services], seeds)
    for number, (fold, stream) in enumerate(zip(folds, services, strict=True)):
        true = {scores.DEFAULT: by(None), scores.QUERY_ONLY: by(asking[number])}
        none = {scores.PERMUTED_START: by(UNTRAINED), scores.PERMUTED: by(blind[number])}
        sighted = tested(domain, fold, remembered(domain.effects, stream.log), true)
        lost = tested(domain, fold, remembered(domain.effects, shuffled[number]), none)
        for (mode, user, ndcg), (_, _, other) in zip(sighted, lost, strict=True):
            table[mode, MANY].add(user, {**ndcg, **other})
    return table


def service(domain: tau.Domain, fold: tau_folds.Fold, decisions: int) -> Service:
    """Returns the stream of a fold: the training users' questions, drawn with replacement."""
    rng = np.random.default_rng([fold.seed, fold.number, 4])
    questions = training_questions(fold)
    rows = rng.integers(0, len(questions), decisions).tolist()
    scenes = {row: scene(domain, questions[row]) for row in set(rows)}
    outcome = _outcome([questions[row] for row in rows], rng.spawn(1)[0])
    return Service([scenes[row] for row in rows], outcome, domain.effects, PLACES, rng)


def _outcome(drawn: Sequence[tau_folds.Question], rng: np.random.Generator) -> RewardOf:
    def outcome(now: int, slate: Slate) -> float:
        helped = drawn[now].utility[list(slate)].sum() / PLACES
        return float(rng.random() < BASE + GAIN * helped)

    return outcome


def tested(
    domain: tau.Domain, fold: tau_folds.Fold, memory: Memory, arms: Mapping[str, Order]
) -> list[tuple[tau_folds.Mode, str, dict[str, float]]]:
    """Returns mode, user, and nDCG@4 by arm and fixed rule of each question of the fold's test users."""
    return [
        (mode, question.user, _ndcg(SeenQuestion.of(domain, question, memory), arms))
        for mode, questions in fold.test.items()
        for question in questions
        if question.ideal > 0
    ]


def _ndcg(seen: SeenQuestion, arms: Mapping[str, Order]) -> dict[str, float]:
    question = seen.question
    best = np.argsort(-question.utility, kind="stable")[:PLACES]
    known = {"none": 0.0, scores.ORACLE: question.worth.ndcg(best), **question.fixed}
    return known | {name: seen.reached(order_of) for name, order_of in arms.items()}
