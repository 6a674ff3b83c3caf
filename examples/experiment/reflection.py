"""The effect of reflection on procedures that fail: after a change of rules, failed runs revise in one of two banks.

Both banks hold the same practice from before the change and the runs of the same few tasks after it. In one of them the
procedures are pinned, so that a failed run writes no new version. Both are then tested on the same further tasks.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from app.demo.memory import HttpMemory, RetrievedCases
from examples.experiment.episode import Episode, EpisodeOutcome
from examples.experiment.harness import Harness, TestTasks, fill
from examples.world import ChangingAdapter, Own, Size, Task

LESSONS = 2
"""Tasks of each family that are kept between the change and the test: so few that most of the change is still new."""


@dataclass(frozen=True, slots=True)
class Reflection:
    """The test after the change, with pinned procedures (``kept``) and with procedures that failed runs revised."""

    kept: Sequence[Episode] = ()
    revised: Sequence[Episode] = ()
    failed: int = 0
    """Failed runs among those between the change and the test, in the bank with revisions."""


async def reflect(harness: Harness, environment: Own, practised: Sequence[EpisodeOutcome], size: Size) -> Reflection:
    """Returns the tests of both banks, or an empty result if the environment's rules cannot change.

    Raises:
        MemoryUnusable: the service cannot be reached, or refuses.
    """
    adapter = harness.adapter
    if not isinstance(adapter, ChangingAdapter):
        return Reflection()
    drawn = [await adapter.changed_tasks(environment, family, size) for family in adapter.families]
    lessons = [task for tasks in drawn for task in tasks.practice[:LESSONS]]
    random.Random(size.seed).shuffle(lessons)
    tested = TestTasks([task for tasks in drawn for task in tasks.test])
    kept, _ = await _arm(harness, "kept", await _bank(harness, "kept", practised, size.k), lessons, tested)
    revised, failed = await _arm(
        harness, "revised", await _bank(harness, "revised", practised, size.k), lessons, tested
    )
    return Reflection(kept, revised, failed)


async def _bank(harness: Harness, name: str, practised: Sequence[EpisodeOutcome], k: int) -> HttpMemory:
    """Returns a bank of the practice from before the change, without the slates of those runs."""
    memory = await harness.bank(name, k)
    await fill(memory, [EpisodeOutcome(each.episode, each.task, each.run, RetrievedCases()) for each in practised])
    return memory


async def _arm(
    harness: Harness, name: str, memory: HttpMemory, lessons: Sequence[Task], tested: TestTasks
) -> tuple[list[Episode], int]:
    """Returns the test of a bank after its lessons, and the number of failed lessons."""
    failed = 0
    for lesson in lessons:
        if name == "kept":
            await harness.pin_procedures(memory)
        (outcome,) = await harness.practise(f"rules changed, {name}", memory, [lesson])
        failed += not outcome.episode.success
    return await harness.test(f"test under new rules, {name}", memory, tested), failed
