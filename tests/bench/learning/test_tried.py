"""Inputs that were tried: each tells what its name says, from the runs' texts and calls."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import numpy as np
import orjson
import pytest

from app.providers.wordllama import WordLlamaEmbedder
from bench.learning import runs, tau, tau_folds, tried
from bench.learning.memory import Scene
from policy import evidence, features

Call = tuple[str, dict[str, object], bool]
"""Its tool, arguments, and whether it failed."""
Told = Callable[..., Awaitable[dict[str, list[float]]]]
LOOK: Call = ("get_order", {"order_id": "#W123"}, False)
CANCEL: Call = ("cancel_order", {"order_id": "#W123", "reason": "late"}, False)
CANCEL_BARE: Call = ("cancel_order", {"order_id": "#W77"}, False)
REFUND: Call = ("refund_order", {"order_id": "#W123"}, False)
REFUSED: Call = ("refund_order", {"order_id": "#W1"}, True)


@pytest.fixture
def told(tmp_path: Path, embedder: WordLlamaEmbedder) -> Told:
    async def told(query: str, *cases: tuple[str, Sequence[Call]]) -> dict[str, list[float]]:
        """Returns each input of the cases, all of them successes and equally near to the query."""
        given = [(query, [LOOK]), *cases]
        (tmp_path / "runs.jsonl").write_bytes(b"\n".join(_run(n, *each) for n, each in enumerate(given)))
        (tmp_path / "tasks.jsonl").write_bytes(orjson.dumps({"task_key": "t", "gold_actions": []}))
        domain = await tau.read(tmp_path, embedder)
        found = tried.tried(tried.read(tmp_path, domain), _scene(domain))
        return dict(zip(tried.NAMES, found.T.tolist(), strict=True))

    return told


def _run(number: int, task: str, calls: Sequence[Call]) -> bytes:
    steps = [
        {"tool": tool, "input": given, "output": "Error: no order #W1" if error else "done", "error": error}
        for tool, given, error in calls
    ]
    began = f"2026-01-{number + 1:02}"
    return orjson.dumps(
        {"user": f"u{number}", "task_id": "t", "task_text": task, "reward": 1, "steps": steps, "started_at": began}
    )


def _scene(domain: tau.Domain) -> Scene:
    n = len(domain.user) - 1
    cases = evidence.Cases(
        similarity=np.full(n, 0.8),
        keyword_rank=np.full(n, np.nan),
        reward=np.ones(n),
        effects=domain.effects[1:],
        steps=domain.steps[1:],
        errors=domain.errors[1:],
    )
    none = np.zeros(n, np.int16)
    own, said = np.zeros((n, len(features.OWN)), np.float32), np.zeros((n, len(evidence.NAMES)), np.float32)
    return Scene(0, domain.vectors[0], np.arange(1, n + 1), own, cases, said, none, none)


async def test_the_same_tool_with_other_arguments_agrees_less_by_the_arguments_and_not_by_the_order(told: Told):
    found = await told("cancel it", ("a", [CANCEL]), ("b", [CANCEL]), ("c", [CANCEL_BARE]))
    assert found["arguments_agree"][2] < found["arguments_agree"][0]
    assert found["order_agree"] == pytest.approx([1, 1, 1])


async def test_the_same_tools_the_other_way_round_agree_less_by_the_order_and_not_by_the_arguments(told: Told):
    found = await told("x", ("a", [CANCEL, REFUND]), ("b", [CANCEL, REFUND]), ("c", [REFUND, CANCEL]))
    assert found["order_agree"][2] < found["order_agree"][0]
    assert found["arguments_agree"] == pytest.approx([1, 1, 1])


async def test_what_only_looks_counts_among_all_steps_alone(told: Told):
    found = await told("x", ("a", [CANCEL]), ("b", [CANCEL]), ("c", [LOOK, CANCEL]))
    assert found["all_steps_agree"][2] < found["all_steps_agree"][0]
    assert found["order_agree"] == pytest.approx([1, 1, 1])


async def test_plans_of_like_words_agree_by_their_text_though_their_tools_differ(told: Told):
    other: Call = ("close_account", {"account": "A-9"}, False)
    found = await told("x", ("a", [CANCEL]), ("b", [REFUND]), ("c", [other]))
    assert found["text_agree"][2] < found["text_agree"][1]


async def test_an_error_that_others_met_too_agrees_whatever_its_values_were(told: Told):
    alike: Call = ("refund_order", {"order_id": "#W9"}, True)
    found = await told("x", ("a", [REFUSED, CANCEL]), ("b", [alike, CANCEL]), ("c", [CANCEL]))
    assert found["error_signatures_agree"][0] == pytest.approx(found["error_signatures_agree"][1])
    assert found["error_signatures_agree"][2] < found["error_signatures_agree"][0]


async def test_numbers_names_and_negations_of_the_query_are_held_against_the_cases_task(told: Told):
    found = await told(
        "Do not cancel order #W123 for Mia", ("Please cancel #W123 for Mia", [CANCEL]), ("never cancel #W5", [CANCEL])
    )
    assert found["numbers_shared"] == [1, 0]
    assert found["entities_shared"] == [1, 0]
    assert found["negations_differ"] == [1, 0]
    assert found["words_missing"] == pytest.approx([3 / 7, 6 / 7])
    assert found["length_differs"] == pytest.approx([np.log(8 / 6), np.log(8 / 4)], rel=1e-5)


async def test_a_plan_is_as_idle_as_its_longest_unused_tool(told: Told):
    found = await told("x", ("a", [CANCEL, REFUND]), ("b", [CANCEL]), ("c", [CANCEL]), ("d", [LOOK]))
    assert found["tools_idle"] == pytest.approx([3 / 4, 1 / 4, 1 / 4, 0])


async def test_all_is_finite_on_real_runs(airline: tau.Domain, airline_folder: Path):
    written = tried.read(airline_folder, airline)
    asked = [question for _, question in tau_folds.tested(airline, [0])][:40]
    found = np.concatenate([tried.tried(written, runs.scene(airline, question)) for question in asked])
    assert np.isfinite(found).all()
    assert (found.std(axis=0) > 0).all()
