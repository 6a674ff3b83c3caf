"""Benchmarks 1 and 4: a bank of answers with what its cases claim, and each query with its pool as the product sees it.

A case's plan is its stored answer, as the one tool that it calls; that tool has no name, for an intent's name would
give the answer away.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np

from bench.learning.banking import Bank, Bools, Pools, Questions
from bench.learning.memory import Scene
from policy import evidence, features
from policy.logged import Floats, Ints
from retrieval.ranking.near_duplicates import groups

_NO_NAMES = 1
"""Dimension of the tools' names, which nobody is shown here."""


@dataclass(frozen=True, slots=True, eq=False)
class Claims:
    """A bank, and the claims of its cases; (cases,) each."""

    bank: Bank
    effects: Floats  # (cases, intents), how often the plan calls each tool
    reward: Floats  # 0 to 1; 0: the run says itself that it failed
    proven: Bools  # somebody but the run says so
    source: Ints  # who wrote it

    def scenes(self, questions: Questions, pools: Pools) -> list[Scene]:
        """Returns each question with its candidates."""
        return [self._scene(number, questions, pools) for number in range(len(questions.texts))]

    def _scene(self, number: int, questions: Questions, pools: Pools) -> Scene:
        case = pools.case[number]
        reward, nothing, once = self.reward[case], np.zeros(len(case)), np.ones(len(case))
        table = {
            "semantic_rank": pools.semantic_rank[number],
            "keyword_rank": pools.keyword_rank[number],
            "similarity": pools.similarity[number],
            "rrf": pools.rrf[number],
            "reward": reward,
            "occurrences": once,
            "failed": reward == 0,
            "proven": self.proven[case],
        }
        cases = evidence.Cases(
            similarity=pools.similarity[number],
            keyword_rank=pools.keyword_rank[number],
            reward=reward,
            effects=self.effects[case],
            steps=once,
            errors=nothing,
        )
        tools = self.effects.shape[1]
        unnamed = evidence.Tools(np.zeros((tools, _NO_NAMES)), np.zeros(_NO_NAMES), np.zeros(tools))
        return Scene(
            query=number,
            vector=questions.vectors[number].astype(np.float64),
            case=case,
            own=np.stack([table.get(name, nothing) for name in features.OWN], axis=1).astype(np.float32),
            cases=cases,
            peers=evidence.features(cases, cases, unnamed),
            group=groups(self._rows(case)),
            source=self.source[case].astype(np.int16),
        )

    def _rows(self, case: Ints) -> Sequence[SimpleNamespace]:
        """The cases as the database answers them, as far as groups look at them."""
        bank = self.bank
        return [
            SimpleNamespace(task=bank.texts[row], plan=(int(bank.answers[row]),), failed=self.reward[row] == 0)
            for row in case
        ]
