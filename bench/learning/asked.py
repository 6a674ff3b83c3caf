"""Queries of every domain in one form: the candidates as the product sees them, and what each is worth by each reading.

Two more worlds are made of the same runs by hiding their plans: as if an agent had one tool, so that all did the same,
and as if each had written down its plan in words of its own.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from bench.learning import banking, rules, runs, tau, tau_folds
from bench.learning.linucb import Reals
from bench.learning.memory import Memory, Scene
from bench.learning.reuse import stage
from bench.learning.worth import DISCOUNT, PLACES, Reading, Worth, ndcg
from policy import evidence, features
from policy.slate import Slate, choose, order

RRF, SUCCESSES, CONSENSUS = "rrf", "rrf + success filter", "plan consensus + success filter"
BANKING = banking.Scenario(decisions=1)
EVERY = 3
"""One in so many of the test file's questions is asked: one seed's is as good as another's."""


class Hidden(Enum):
    """How plans say nothing; the value is what the tables call it."""

    ONE_TOOL = "one tool for all"
    PROSE = "each in its own words"


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """One query before anything was learned: ``user`` is what intervals cluster by."""

    user: str
    scene: Scene
    seen: features.Features
    worth: dict[Reading, Worth]

    @classmethod
    def of(cls, user: str, scene: Scene, worth: dict[Reading, Worth]) -> "Asked":
        """Returns the query as the product sees it."""
        nothing = Memory(np.zeros((int(scene.case.max()) + 1, scene.cases.effects.shape[1])))
        return cls(user, scene, nothing.features(scene), worth)

    def slate(self, scores: Reals) -> Slate:
        """Returns what is served where this orders the candidates, by the rules that serve."""
        field = self.scene.field(self.seen)
        return choose(field, order(field, np.asarray(scores, np.float32)), PLACES)

    def without_plans(self, hidden: Hidden) -> "Asked":
        """Returns the same query where plans say nothing; what each candidate is worth stays."""
        count = len(self.scene.case)
        effects = np.ones((count, 1)) if hidden is Hidden.ONE_TOOL else np.eye(count)
        cases = replace(self.scene.cases, effects=effects)
        tools = effects.shape[1]
        nameless = evidence.Tools(np.zeros((tools, 1)), np.zeros(1), np.zeros(tools))
        scene = replace(self.scene, cases=cases, said=evidence.features(cases, cases, nameless))
        return Asked.of(self.user, scene, self.worth)


def of_runs(domain: tau.Domain, seeds: Sequence[int]) -> Iterator[tuple[str, Asked]]:
    """Yields mode and query of the agent runs, every one of which some case of the bank helps by some reading."""
    for mode, question in tau_folds.tested(domain, seeds):
        yield mode.name.lower(), Asked.of(question.user, runs.scene(domain, question), dict(question.worth))


def of_banking(corpus: banking.Corpus, seeds: Sequence[int]) -> Iterator[tuple[str, Asked]]:
    """Yields the questions of bank customers: a case helps where its stored answer is right. Nobody comes back."""
    few = replace(corpus, test=corpus.test.take(np.arange(0, len(corpus.test.texts), EVERY)))
    for seed in seeds:
        each = stage(few, BANKING, seed)
        works = each.world.test_works().astype(np.float64)
        pools, questions, log = each.world.test_pools, each.world.test, banking.NOTHING_LOGGED
        agreed = rules.plan_consensus(each.world, questions, pools, log)
        for row, scene in enumerate(each.test):
            right = int((each.world.bank.answers == questions.intents[row]).sum())
            best = float(DISCOUNT[: min(right, PLACES)].sum())
            orders = {RRF: pools.rrf[row], SUCCESSES: pools.rrf[row], CONSENSUS: agreed[row]}
            firsts = {name: np.argsort(-score, kind="stable")[:PLACES] for name, score in orders.items()}
            fixed = {name: ndcg(works[row], chosen, best) for name, chosen in firsts.items()} if best > 0 else {}
            nothing = Worth(np.zeros(len(works[row])), 0.0, {})
            worth = {Reading.AGREEMENT: Worth(works[row], best, fixed), Reading.SAME_TASK: nothing}
            yield "cold", Asked.of(f"question {row}", scene, worth)
