"""The demo's database operator as an environment to experiment with."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from itertools import count

from app.demo.memory import AgentRun
from app.demo.operator.families import FAMILY_BY_KEY, Task, draw
from app.demo.operator.operator import STEP_BUDGET, Operator
from app.demo.operator.scratch import Scratch, scratch_database
from examples.world import Briefing, Environment, Size, Tasks

LOOKALIKES = (
    "missing_type",
    "reserved_column",
    "value_missing",
    "sequence_behind",
    "type_change",
    "enum_label",
    "mixed_case_table",
    "double_quoted_text",
)
"""Families; half of them share an SQLSTATE or all wordings with another, so that a wrong memory looks right."""


class DatabaseOperator:
    """Tasks on a scratch database beside the one of ``dsn``, whose role may create databases."""

    name = "operator"
    families = LOOKALIKES
    budget = STEP_BUDGET
    min_similarity = 0.35
    size = Size(practice=8, test=6)
    explanation = (
        "A scripted operator, not an LLM: it knows a fixed list of generic repairs for SQL and tries them one by one, "
        "or first those that the injected cases name. Every error and every success is Postgres's own. A step is one "
        "SQL statement, one look at the catalog or one check of the goal."
    )

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn

    def environment(self) -> AbstractAsyncContextManager[Scratch]:
        """Yields a scratch database, deleted after the block."""
        return scratch_database(self._dsn, budget=self.budget)

    async def tasks(self, environment: Scratch, family: str, size: Size) -> Tasks:  # noqa: ARG002 (the protocol's)
        """Returns variations of the family in the order of the seed, no two with the same words."""
        drawn: dict[str, Task] = {}
        for variation in count():
            if len(drawn) == size.practice + size.test:
                break
            task = draw(FAMILY_BY_KEY[family], size.seed, variation)
            drawn.setdefault(task.text, task)
        tasks = list(drawn.values())
        return Tasks(tasks[: size.practice], tasks[size.practice :])

    async def demonstrations(self, environment: Scratch, tasks: Sequence[Task]) -> Sequence[AgentRun]:  # noqa: ARG002
        """Returns no runs: the operator has no expert."""
        return ()

    async def play(self, world: Environment, briefing: Briefing) -> AgentRun:
        """Returns the operator's run."""
        return await Operator(briefing.task, briefing.slate, world, order_seed=briefing.seed).run()
