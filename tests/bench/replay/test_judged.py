from bench.replay.judged import CHANGE, TRIES, tries_of
from bench.replay.loops import NoMemory, Plan, WordsInCommon
from bench.replay.runs import Run


class Keeps(WordsInCommon):
    """A memory that keeps the runs for the test, too."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[Run] = []

    def keep(self, run: Run) -> None:
        self.runs.append(run)
        super().keep(run)


def test_each_try_is_a_run_and_the_last_one_of_a_request_is_right_if_any_is():
    memory = Keeps()
    tries = tries_of(memory, 0)
    assert len(memory.runs) == sum(min(each, TRIES) for each in tries)
    assert sum(run.succeeded for run in memory.runs) == (tries <= TRIES).sum()
    assert all(call.ok for run in memory.runs for call in run.calls)


def test_half_way_the_right_plans_of_some_kinds_change():
    memory = Keeps()
    tries = tries_of(memory, 1)
    first_after = sum(min(each, TRIES) for each in tries[:CHANGE])

    def plans(runs: list[Run]) -> set[tuple[str, tuple[str, ...]]]:
        return {(run.kind, tuple(call.tool for call in run.calls)) for run in runs if run.succeeded}

    assert plans(memory.runs[:first_after]) != plans(memory.runs[first_after:])


def test_a_memory_helps_and_the_same_seed_gives_the_same_tries():
    alone: Plan = ()
    assert NoMemory().recall("", None) == alone
    assert tries_of(WordsInCommon(), 2).mean() < tries_of(NoMemory(), 2).mean()
    assert (tries_of(WordsInCommon(), 2) == tries_of(WordsInCommon(), 2)).all()
