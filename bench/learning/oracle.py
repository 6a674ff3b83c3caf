"""Benchmark 11: where outcomes teach nothing on agent runs, what is short: the log, or what the policy sees?

A policy learns from outcomes of whole slates; from outcomes of which it is told, besides, which one case the agent
followed; and from every label, which is all that any log can say. Beside its own inputs it is given one that the
benchmark makes of the truth and of noise: by how much it goes with what a candidate is worth says how much of what kind
of signal would be needed. Test users' queries are no one's training, and the order before is the untrained default's.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from bench.learning import runs, scores, tau, tau_folds
from bench.learning.learner import PLAN, Recipe, Service, examples, remembered
from bench.learning.memory import Memory
from bench.learning.runs import BASE, GAIN, LABEL_PLACES, LABEL_PLAN, Asked, asked_in_training
from bench.learning.scores import MANY, Scores, by_user
from bench.learning.worth import PLACES
from bench.measure import Measurement
from policy.decide import Policy
from policy.examples import Array, Examples
from policy.inputs import CASE, QUERY, Inputs, inputs_of
from policy.logged import Floats, Ints
from policy.network import untrained
from policy.slate import Slate

SEEDS = (0,)
CORRELATIONS = (0.0, 0.1, 0.2, 0.4, 0.6)
"""Of the added input with what a candidate is worth, among those of one query; 0: no input is added."""


class Told(Enum):
    """What a policy learns from; the value is what the table calls it."""

    OUTCOMES = "outcomes of slates"
    FOLLOWED = "outcomes, and the case followed"
    LABELS = "every label"


@dataclass(frozen=True, slots=True, eq=False)
class Lesson:
    """What one fold's training users teach.

    Attributes:
        examples: without the added input.
        asked: (n,), the question of each example.
        places: (n, K), which of its candidates stands in each place; -1: none.
        memory: what the service remembers by then.
    """

    examples: Examples
    asked: Sequence[tau_folds.Question]
    places: Ints
    memory: Memory


@dataclass(frozen=True, slots=True)
class Hint:
    """The input that is made of the truth: what a candidate is worth, and noise."""

    correlation: float
    spread: float
    """Standard deviation of what the candidates of one query are worth."""

    @classmethod
    def of(cls, asked: Sequence[tau_folds.Question], correlation: float) -> "Hint":
        """Returns the hint that goes with the worth of these questions' candidates by so much."""
        return cls(correlation, float(np.sqrt(np.mean([question.utility.var() for question in asked]))))

    def beside(self, inputs: Array, question: tau_folds.Question) -> Array:
        """Returns the inputs of the question's candidates, (n, D), with the hint as the last, if there is one."""
        if not self.correlation:
            return inputs
        noise = self.spread * np.sqrt(1 / self.correlation**2 - 1)
        drawn = np.random.default_rng([question.run, 5]).normal(0, noise, len(question.utility))
        return np.column_stack([inputs, question.utility + drawn]).astype(np.float32)


def run(name: str, domain: tau.Domain) -> list[Measurement]:
    """Returns the table of one domain: learned order less the default's, by what is told and by the hint."""
    folds = list(tau_folds.folds(domain, SEEDS))
    rows: list[Measurement] = []
    for told in Told:
        lessons = [lesson(domain, fold, told) for fold in folds]
        met = [tested(domain, fold, lesson.memory) for fold, lesson in zip(folds, lessons, strict=True)]
        for correlation in CORRELATIONS:
            hints = [Hint.of(asked_in_training(fold), correlation) for fold in folds]
            policies = learned(lessons, hints, told)
            table = {mode: Scores() for mode in tau_folds.Mode}
            for questions, hint, policy in zip(met, hints, policies, strict=True):
                for mode, asked, seen in questions:
                    ndcg = {
                        scores.DEFAULT: reached(asked, seen.prior),
                        scores.LOGGED: reached(asked, scored(policy, hint, asked, seen)),
                    }
                    table[mode].add(asked.question.user, ndcg)
            rows += _rows(name, told, correlation, table)
    return [*_known(name, met), *rows]


def lesson(domain: tau.Domain, fold: tau_folds.Fold, told: Told, decisions: int = MANY) -> Lesson:
    """Returns what the fold's training users teach: their labels, or the log of so many decisions."""
    if told is Told.LABELS:
        asked = [Asked.of(domain, question) for question in asked_in_training(fold)]
        sizes = [min(LABEL_PLACES, len(each.question.utility)) for each in asked]
        whose = [each.question for each, size in zip(asked, sizes, strict=True) for _ in range(size)]
        places = np.concatenate([np.arange(size) for size in sizes])[:, None]
        return Lesson(runs.labels(asked), whose, places, Memory(domain.effects))
    drawn, service = _service(domain, fold, told, decisions)
    service.advance(decisions)
    places = np.full((decisions, PLACES), -1)
    for row, decision in enumerate(service.log):
        places[row, : len(decision.slate)] = decision.slate
    return Lesson(examples(service.log, PLACES), drawn, places, remembered(domain.effects, service.log))


def _service(
    domain: tau.Domain, fold: tau_folds.Fold, told: Told, decisions: int
) -> tuple[list[tau_folds.Question], Service]:
    """Returns the training users' questions as they come, and the service that answers them by the default alone."""
    rng = np.random.default_rng([fold.seed, fold.number, 4])
    asked = asked_in_training(fold)
    drawn = [asked[row] for row in rng.integers(0, len(asked), decisions)]
    met = {id(question): runs.scene(domain, question) for question in drawn}
    luck = rng.random((2, decisions))

    def followed(now: int, slate: Slate) -> Floats:
        shares = np.zeros(len(slate)) if told is Told.FOLLOWED else np.full(len(slate), 1 / PLACES)
        if told is Told.FOLLOWED and slate:
            shares[int(luck[0, now] * len(slate))] = 1
        return shares

    def outcome(now: int, slate: Slate) -> float:
        helped = float(followed(now, slate) @ drawn[now].utility[list(slate)])
        return float(luck[1, now] < BASE + GAIN * helped)

    def shares(now: int, slate: Slate) -> Floats:
        given = followed(now, slate)
        return given / max(float(given.sum()), 1 / PLACES)

    return drawn, Service([met[id(each)] for each in drawn], outcome, domain.effects, PLACES, rng, shares=shares)


def learned(lessons: Sequence[Lesson], hints: Sequence[Hint], told: Told) -> list[Policy]:
    """Returns the policy that each lesson teaches, which sees its hint."""
    recipe = Recipe(members=1, plan=replace(LABEL_PLAN, ridges=PLAN.ridges)) if told is Told.LABELS else Recipe()
    width = len(CASE) + bool(hints[0].correlation)
    recipe = replace(recipe, start=untrained(width, len(QUERY), recipe.members))
    taught = [_with_hint(lesson, hint) for lesson, hint in zip(lessons, hints, strict=True)]
    return recipe.fit(taught, range(len(taught)))


def _with_hint(lesson: Lesson, hint: Hint) -> Examples:
    if not hint.correlation:
        return lesson.examples
    given = lesson.examples.inputs
    added = np.zeros((*given.shape[:2], 1), np.float32)
    for row, (question, places) in enumerate(zip(lesson.asked, lesson.places, strict=True)):
        hints = hint.beside(np.zeros((len(question.utility), 0), np.float32), question)[:, 0]
        added[row, places >= 0, 0] = hints[places[places >= 0]]
    return replace(lesson.examples, inputs=np.concatenate([given, added], axis=2))


Met = tuple[tau_folds.Mode, Asked, Inputs]
"""A test user's question, as the service sees it."""


def tested(domain: tau.Domain, fold: tau_folds.Fold, memory: Memory) -> list[Met]:
    """Returns the test users' questions, of which some case is of use, as the service sees them by then."""
    found = []
    for mode, questions in fold.test.items():
        for question in questions:
            if question.ideal > 0:
                asked = Asked.of(domain, question, memory)
                found.append((mode, asked, inputs_of(asked.seen)))
    return found


def scored(policy: Policy, hint: Hint, asked: Asked, seen: Inputs) -> Array:
    """Returns what the policy orders the question's candidates by, (n,)."""
    part = policy.head.case_part(hint.beside(seen.case, asked.question)).mean(axis=0)
    return np.asarray(seen.prior + policy.blend * part, np.float32)


def reached(asked: Asked, by: Array) -> float:
    """Returns nDCG@4 of the slate that is served where the candidates are ordered by this."""
    return asked.reached(lambda _question, _seen: by)


def _known(name: str, met: Sequence[Sequence[Met]]) -> Iterator[Measurement]:
    """Yields how far the default's own scores go with what candidates are worth: what a hint is to be held against."""
    for mode in tau_folds.Mode:
        pairs = [
            np.stack([seen.prior - seen.prior.mean(), asked.question.utility - asked.question.utility.mean()])
            for questions in met
            for of_mode, asked, seen in questions
            if of_mode is mode
        ]
        known = float(np.corrcoef(np.concatenate(pairs, axis=1))[0, 1])
        what = f"oracle {name} {mode.name.lower()}: the default's scores with what candidates are worth"
        yield Measurement(what, known, "", f"correlation within a query, {len(pairs)} queries, every label known")


def _rows(name: str, told: Told, correlation: float, table: Mapping[tau_folds.Mode, Scores]) -> Iterator[Measurement]:
    given = f"a hint of {correlation:g} beside its inputs" if correlation else "its inputs"
    for mode, found in table.items():
        change = found.column(scores.LOGGED) - found.column(scores.DEFAULT)
        low, high = by_user(change, found.users)
        what = f"oracle {name} {mode.name.lower()}, {told.value}, {given}: learned - default"
        detail = f"nDCG@4, {len(change)} queries of {len(set(found.users))} users, {MANY:,} decisions or all labels"
        yield Measurement(what, float(change.mean()), "", detail, interval=(low, high))
