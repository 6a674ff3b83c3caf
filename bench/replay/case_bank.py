"""casebank's own slates as the memory of a closed loop: the code that serves and replays, without a database.

The whole bank is the pool of a query; the search, and its floor of similarity, need the database.
"""

import asyncio
from collections.abc import Sequence

import numpy as np

from bench.replay.loops import Plan
from bench.replay.numbers import A_DAY_S, Numbers, history, numbers
from bench.replay.runs import Run
from policy.features import USUAL_REWARD, Candidates, column, features
from policy.fit import Fit
from policy.replay import PLACES, replay
from policy.slate import choose, ranking, traits_of
from retrieval.ranking.pool import groups
from writer.replays.profile_replay import FRESH, NEWEST


class CaseBank:
    """The newest runs, and the slate of them that the service would serve."""

    def __init__(self) -> None:
        self._runs: list[Run] = []
        self._numbers: list[Numbers] = []
        self._fit: Fit | None = None
        self._fresh = 0

    def recall(self, task: str, error: str | None) -> Sequence[Plan]:  # noqa: ARG002 - the protocol's
        """Returns the plans of the slate's runs that went well, the best first; a failed run is no plan to follow."""
        if not self._runs:
            return ()
        (query,) = asyncio.run(numbers([Run(task, (), succeeded=True, day=0, kind="")]))
        ranked = features(query.terms, self._candidates(query), self._fit)
        failed, one_source = column(ranked.features, "failed") > 0, np.zeros(len(self._runs), dtype=np.int16)
        traits = traits_of(ranked.features, groups(ranked.agreement, failed), one_source, None)
        slate = choose(traits, ranking(traits, column(ranked.features, "order")), PLACES)
        told = (self._runs[index] for index in slate)
        return [tuple(call for call in run.calls if call.ok) for run in told if run.succeeded]

    def keep(self, run: Run) -> None:
        """Keeps the run, and replays the bank where enough runs are new."""
        self._runs = [*self._runs, run][-NEWEST:]
        self._numbers = [*self._numbers, *asyncio.run(numbers([run]))][-NEWEST:]
        self._fresh += 1
        if self._fresh >= FRESH * len(self._runs):
            self._fit, self._fresh = replay(history(self._runs, self._numbers)).fit, 0

    def _candidates(self, query: Numbers) -> Candidates:
        count = len(self._runs)
        failed = np.array([not run.succeeded for run in self._runs], dtype=np.bool_)
        calls = [len(run.calls) for run in self._runs]
        return Candidates(
            times=np.array([run.day * A_DAY_S + place for place, run in enumerate(self._runs)], dtype=np.float64),
            terms=[each.terms for each in self._numbers],
            moves=[each.moves for each in self._numbers],
            similarity=np.array([each.vector @ query.vector for each in self._numbers], dtype=np.float32),
            reward=(~failed).astype(np.float32),
            record=np.full(count, USUAL_REWARD, dtype=np.float32),
            steps=np.array(calls, dtype=np.float32),
            proven=np.ones(count, dtype=np.bool_),
            failed=failed,
        )
