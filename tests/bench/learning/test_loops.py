"""Closed loops: the world says what an order was worth, every arm meets the same tasks, and memory helps."""

import numpy as np

from app.demo.memory import AgentRun
from app.providers.wordllama import WordLlamaEmbedder
from bench.learning import loops
from bench.learning.loops import NOTHING, SERVED, Bank
from examples.clerk.environment import ClerksOffice


async def test_every_order_meets_the_same_tasks_and_an_agent_with_memory_wins_more_of_them(
    embedder: WordLlamaEmbedder,
):
    found = await loops.play_all(ClerksOffice(), embedder, {**loops.RULES, SERVED: None})
    (results,) = found.values()
    assert set(results) == {NOTHING, SERVED, *loops.RULES}
    assert len({tuple(each.task for each in played) for played in results.values()}) == 1
    won = {arm: np.mean([each.success for each in played]) for arm, played in results.items()}
    assert won[SERVED] > won[NOTHING]


def run(task: str, plan: str, *, success: bool) -> AgentRun:
    return AgentRun(task, (plan,), (), success=success, first_try=False)


async def test_an_order_shows_what_went_well_first_and_nothing_that_is_far(embedder: WordLlamaEmbedder):
    bank = await Bank.of(
        [
            run("water the roses in the garden", "open the valve", success=True),
            run("water the roses in the garden bed", "turn the pump", success=False),
            run("file the tax return for last year", "ask the clerk", success=True),
        ],
        embedder,
        least=0.35,
    )
    for rule in (loops.RULES["rrf + success filter"], None):
        shown = await bank.slate("water the roses in our garden", rule, 4)
        assert shown[0].outcome == "success"
        assert all("tax" not in case.task for case in shown)
