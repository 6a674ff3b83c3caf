"""Keyword memory: a simple, strong rival that ranks runs by common words."""

import math
import re
from collections import Counter

from app.demo.memory import AgentRun, RememberedCase, RetrievedCases, Trace, slate_of

PLACES = 4


class KeywordMemory:
    """A memory of all runs, told by words: the runs whose tasks share the rarest words with a new task.

    Of runs with one plan it tells the one nearest to the task; of equally near runs, the newest.

    It trusts the outcome that a run reports, and forgets no run.
    """

    def __init__(self, *, with_errors: bool = False) -> None:
        self._with_errors = with_errors
        self._runs: list[tuple[set[str], RememberedCase]] = []

    async def retrieve(self, task: str) -> RetrievedCases:
        """Returns at most four runs, by the cosine of their words' idf (Salton and Buckley 1988, without counts)."""
        return self._nearest(_words(task))

    async def at_failure(self, task: str, failed: Trace, slate: RetrievedCases) -> str:  # noqa: ARG002 (the protocol's signature)
        """Returns the text of at most four runs, the nearest to the words of the task and of this failure."""
        return self._nearest(_words(f"{task} {failed.output}")).text

    def _nearest(self, query: set[str]) -> RetrievedCases:
        known = Counter(word for words, _ in self._runs for word in words)

        def weight(words: set[str]) -> float:
            return sum(math.log(1 + len(self._runs) / (1 + known[word])) ** 2 for word in words)

        def nearness(run: tuple[set[str], RememberedCase]) -> float:
            return weight(query & run[0]) / math.sqrt(weight(query) * weight(run[0]) or 1)

        unlike: dict[tuple[str, ...], RememberedCase] = {}
        newest_first = self._runs[::-1]
        for _, case in sorted(newest_first, key=nearness, reverse=True):
            unlike.setdefault(case.plan, case)
        return slate_of([*unlike.values()][:PLACES])

    async def retain(self, run: AgentRun, slate: RetrievedCases) -> str | None:  # noqa: ARG002 (the protocol's signature)
        """Adds the run to the list and returns its place there."""
        case = RememberedCase(str(len(self._runs)), run.task, run.plan, "success" if run.success else "failure")
        error = next((trace.output for trace in run.traces if trace.status == "error"), "")
        self._runs.append((_words(f"{run.task} {error}" if self._with_errors else run.task), case))
        return case.case_id


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))
