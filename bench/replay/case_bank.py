"""casebank's own ranking as the memory of a closed loop: the code that serves and replays, without a database."""

import asyncio
from collections.abc import Sequence

import numpy as np

from bench.replay.loops import Plan
from bench.replay.numbers import A_DAY_S, Numbers, history, numbers
from bench.replay.runs import Run
from policy.agreement import SAME
from policy.features import USUAL_REWARD, Candidates, column, features
from policy.fit import Fit
from policy.replay import replay
from writer.replays.profile_replay import FRESH, NEWEST


class CaseBank:
    """The newest runs, ranked by the order that replay chose; one place for each plan."""

    def __init__(self) -> None:
        self._runs: list[Run] = []
        self._numbers: list[Numbers] = []
        self._fit: Fit | None = None
        self._fresh = 0

    def recall(self, task: str, error: str | None) -> Sequence[Plan]:  # noqa: ARG002 - the protocol's
        """Returns the plans of the runs that went well, the best first, each plan once."""
        if not self._runs:
            return ()
        (query,) = asyncio.run(numbers([Run(task, (), succeeded=True, day=0, kind="")]))
        ranked = features(query.terms, self._candidates(query), self._fit)
        told: list[int] = []
        for index in np.argsort(-column(ranked.features, "order"), kind="stable"):
            if self._runs[index].succeeded and not (ranked.agreement[index, told] >= SAME).any():
                told.append(int(index))
        return [tuple(call for call in self._runs[index].calls if call.ok) for index in told]

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
            proven=~failed,
            failed=failed,
        )
