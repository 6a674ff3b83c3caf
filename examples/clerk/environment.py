"""The clerk and its office as an environment to experiment with, whose rules change."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from app.demo.memory import AgentRun
from examples.clerk.clerk import Clerk
from examples.clerk.office import JOBS, Errand, Office, errands
from examples.world import Briefing, Environment, Size, Tasks


class ClerksOffice:
    """Errands of four kinds, under the first rules and the second."""

    name = "office"
    families = tuple(JOBS)
    budget = 8
    min_similarity = 0.35
    size = Size(practice=8, test=8)
    explanation = (
        "A scripted clerk, not an LLM, in a made-up office: it knows which three tools an errand takes, and finds out "
        "by trying which argument each wants; it tries first what procedures, the notes of their revisions and the "
        "plans of cases say. The office is made so that a procedure can be learned and then fails, because the rules "
        "change. A step is one call."
    )

    @asynccontextmanager
    async def environment(self) -> AsyncIterator[Office]:
        """Yields the office."""
        yield Office()

    async def tasks(self, environment: Office, family: str, size: Size) -> Tasks:  # noqa: ARG002 (the protocol's)
        """Returns errands under the first rules."""
        return _split(errands(family, size.seed, range(size.practice + size.test), changed=False), size)

    async def changed_tasks(self, environment: Office, family: str, size: Size) -> Tasks:  # noqa: ARG002 (as above)
        """Returns errands under the second rules."""
        numbers = range(1_000, 1_000 + size.practice + size.test)
        return _split(errands(family, size.seed, numbers, changed=True), size)

    async def demonstrations(self, environment: Office, tasks: Sequence[Errand]) -> Sequence[AgentRun]:  # noqa: ARG002
        """Returns no runs: the office has no expert."""
        return ()

    async def play(self, world: Environment, briefing: Briefing) -> AgentRun:
        """Returns the clerk's run."""
        return await Clerk(briefing).run(world)


def _split(drawn: Sequence[Errand], size: Size) -> Tasks:
    return Tasks(drawn[: size.practice], drawn[size.practice :])
