"""The streams and closed loops that replay is measured on: drawn by seed alone, honest about what a plan solves."""

import re
import shutil
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from bench.replay.case_bank import CaseBank
from bench.replay.household import HouseholdWorld
from bench.replay.houses import HouseWorld, Repairing, houses, repair
from bench.replay.loops import BUDGET, Attempt, NoMemory, Plan, WordsInCommon, play
from bench.replay.runs import Call, Run
from bench.replay.shops.shop import Shop
from bench.replay.shops.world import SHOP_WORLDS, Service, ShopWorld
from bench.replay.stream import REPORT_SEEDS, STREAMS, TUNING_SEEDS, with_first_error
from bench.replay.support import RUNS, changed_kinds, support, support_changed

SHOPS = [world.shop for world in SHOP_WORLDS]
BANK = 'text,category\n"Where is my card?",card_arrival\n' + '"I lost it",lost_card\n' * 500
TAU_RUN = (
    '{"run_id": "r1", "started_at": "", "task_text": "cancel it", "task_id": "t1", "reward": 1, "steps": ['
    '{"tool": "find", "input": {"id": 1}, "output": "Error: not found", "error": true},'
    '{"tool": "cancel", "input": {"id": 2}, "output": "{}", "error": false}]}'
)


def solves(attempt: Attempt, plan: Plan) -> bool:
    """Returns whether the plan solves the task, from its first call to its last without a refusal."""
    return all(attempt.act(call).ok for call in attempt.adapted(plan) if not attempt.solved) and attempt.solved


@pytest.mark.parametrize("name", ["support", "support_changed", "houses"])
def test_a_seed_draws_the_same_stream_each_time_and_another_seed_another(name: str, tmp_path: Path):
    assert STREAMS[name](7, tmp_path) == STREAMS[name](7, tmp_path)
    assert STREAMS[name](7, tmp_path) != STREAMS[name](8, tmp_path)


@pytest.mark.parametrize("kind", ["put", "light", "clean", "heat", "cool", "two"])
def test_an_experts_way_solves_the_household_games_of_its_kind_and_of_no_other(kind: str):
    world = HouseholdWorld()
    assert [each.text for each in world.attempts(3)] == [each.text for each in world.attempts(3)]
    way = next(tuple(run.calls) for run in world.demonstrations(3) if run.kind == kind)
    for game in world.attempts(3):
        # whoever puts two things somewhere has put one there on the way
        assert solves(game, way) == (game.kind == kind or (game.kind, kind) == ("put", "two"))


def test_casebank_tells_the_way_of_household_games_first_more_often_than_words_in_common():
    world = HouseholdWorld(tasks=60, expert_runs=100)
    without, words, casebank = (play(world, memory(), 3) for memory in (NoMemory, WordsInCommon, CaseBank))
    assert without.first_try < 0.5 < words.first_try < casebank.first_try


def test_a_stream_asked_at_a_failure_has_the_first_error_of_each_run_in_its_text_and_nothing_else_changed():
    before, after = houses(3), with_first_error(houses(3))
    assert any(not call.ok for run in before.runs for call in run.calls)
    for run, asked in zip(before.runs, after.runs, strict=True):
        first = next((call.output for call in run.calls if not call.ok), "")
        assert asked == replace(run, task=f"{run.task}\n{first}")


def test_no_seed_is_for_tuning_and_for_reports():
    assert not set(TUNING_SEEDS) & set(REPORT_SEEDS)


@pytest.mark.parametrize("shop", SHOPS, ids=lambda shop: shop.name)
def test_each_kind_of_a_shop_appears_and_days_never_run_back(shop: Shop):
    runs = support(3, shop).runs
    assert len(runs) == RUNS
    assert {run.kind for run in runs} == {kind.name for kind in shop.kinds}
    assert len(shop.kinds) >= 8
    assert all(before.day <= after.day for before, after in pairwise(runs))


def test_about_a_seventh_of_the_support_runs_failed_or_have_failed_calls():
    runs = [run for seed in range(4) for run in support(seed).runs]
    flawed = [run for run in runs if not run.succeeded or not all(call.ok for call in run.calls)]
    assert 0.10 < len(flawed) / len(runs) < 0.20
    assert any(run.succeeded for run in flawed)
    assert any(all(call.ok for call in run.calls) for run in flawed)


@pytest.mark.parametrize("world", SHOP_WORLDS, ids=lambda world: world.name)
def test_a_plan_solves_the_tasks_of_its_kind_and_of_no_other(world: ShopWorld):
    remembered = {attempt.kind: attempt.request.plan for attempt in world.attempts(1)}
    for attempt in world.attempts(2):
        for kind, plan in remembered.items():
            assert solves(Service(world.shop, attempt.request), plan) == (kind == attempt.kind)


def test_a_house_accepts_its_own_chain_of_repairs_and_no_other_one():
    attempts = list(HouseWorld(tasks=60).attempts(3))
    chains = {attempt.right: tuple(repair(key) for key in attempt.right) for attempt in attempts}
    for attempt in attempts:
        for right, plan in chains.items():
            fresh = Repairing(attempt.task, attempt.right)
            assert solves(fresh, plan) == (right == attempt.right != ())


def test_a_house_names_postgres_own_error_with_the_statements_names_and_changes_its_ways_half_way():
    stream = houses(3)
    assert all(re.match(r"\w{5}: [^\\]+$", str(run.calls[0].output)) for run in stream.runs)
    closed = [run for run in stream.runs if run.kind == "closed_books"]
    assert closed
    assert not any(run.succeeded for run in closed)
    ways: dict[str, list[set[str]]] = {}
    for place, run in enumerate(stream.runs):
        repairs = str([call.input for call in run.calls if call.ok and call.tool == "repair"])
        ways.setdefault(run.kind, [set(), set()])[place >= (stream.change or 0)].add(repairs)
    assert any(before and after and not before & after for before, after in ways.values())
    assert all(len(before) <= 1 and len(after) <= 1 for before, after in ways.values())


def test_half_of_the_kinds_change_their_plan_half_way_and_the_others_keep_it():
    stream, shop = support_changed(4), SHOPS[0]
    changed = changed_kinds(shop, 4)
    assert len(changed) == len(shop.kinds) // 2
    assert stream.change == RUNS // 2

    def plans(runs: tuple[Run, ...]) -> dict[str, list[object]]:
        return {run.kind: [rule_of(call, run.task) for call in run.calls if call.ok] for run in runs if run.succeeded}

    before, after = plans(stream.runs[: stream.change]), plans(stream.runs[stream.change :])
    for kind in before.keys() & after.keys():
        assert (before[kind] != after[kind]) == (kind in changed)


def rule_of(call: Call, task: str) -> tuple[str, dict[str, object]]:
    """Returns the call without the values of the request."""
    given = dict(call.input).items()
    return call.tool, {name: value for name, value in given if not re.search(rf"\b{value}\b", task)}


@pytest.mark.parametrize("shop", SHOPS, ids=lambda shop: shop.name)
def test_the_words_of_a_request_hide_neither_its_number_nor_a_slot(shop: Shop):
    for run in support(5, shop).runs:
        assert "{" not in run.task
        assert all(value in run.task for call in run.calls for value in list(dict(call.input).values())[:1])


@pytest.mark.parametrize("name", ["banking77", "tau_retail", "tau_airline", "tau_telecom"])
def test_without_its_data_a_stream_is_skipped_with_the_reason(name: str, tmp_path: Path):
    stream = STREAMS[name](0, tmp_path)
    assert (stream.name, stream.runs) == (name, ())
    assert "not on this machine" in stream.skipped


@pytest.mark.skipif(shutil.which("java") is not None, reason="Java is here, and would take a minute")
def test_without_java_the_school_experiments_are_skipped_with_the_reason(tmp_path: Path):
    stream = STREAMS["scienceworld"](0, tmp_path)
    assert stream.runs == ()
    assert stream.skipped


def test_the_plan_of_a_bank_customers_text_is_its_intent(tmp_path: Path):
    (tmp_path / "banking77").mkdir()
    (tmp_path / "banking77" / "train.csv").write_text(BANK)
    runs = STREAMS["banking77"](0, tmp_path).runs
    assert len(runs) == 500
    assert all([call.tool for call in run.calls] == [run.kind] for run in runs)


def test_the_steps_of_a_recorded_run_are_its_calls_and_an_error_is_a_failed_one(tmp_path: Path):
    (tmp_path / "tau" / "retail").mkdir(parents=True)
    without_task = TAU_RUN.replace("cancel it", "")
    (tmp_path / "tau" / "retail" / "runs.jsonl").write_text(f"{TAU_RUN}\n{without_task}\n")
    (run,) = STREAMS["tau_retail"](0, tmp_path).runs
    assert (run.task, run.succeeded, run.kind) == ("cancel it", True, "t1")
    assert run.calls == (
        Call("find", {"id": 1}, "Error: not found", ok=False),
        Call("cancel", {"id": 2}, "{}", ok=True),
    )


def test_recorded_runs_stand_in_the_order_of_time_if_all_have_a_date_and_else_in_one_drawn_by_seed(tmp_path: Path):
    file = tmp_path / "tau" / "telecom" / "runs.jsonl"
    file.parent.mkdir(parents=True)

    def drawn(seed: int, *dates: str) -> tuple[bool, list[str]]:
        rows = [TAU_RUN.replace("r1", date or "undated").replace('_at": "', f'_at": "{date}') for date in dates]
        file.write_text("\n".join(rows))
        stream = STREAMS["tau_telecom"](seed, tmp_path)
        return stream.fixed, [run.recorded for run in stream.runs]

    days = [f"2025-08-{day:02}" for day in (9, 3, 7, 1, 8, 2)]
    assert drawn(0, *days) == drawn(1, *days) == (True, sorted(days))
    some = [*days, ""]
    assert drawn(0, *some) != drawn(1, *some)
    assert not drawn(0, *some)[0]


class RightPlans:
    """A memory that knows the right plan of each task beforehand."""

    def __init__(self, world: ShopWorld, seed: int) -> None:
        self._plans = {attempt.text: attempt.request.plan for attempt in world.attempts(seed)}

    def recall(self, task: str, error: str | None) -> list[Plan]:
        assert error is None  # nothing was refused
        return [self._plans[task]]

    def keep(self, run: Run) -> None:
        assert run.succeeded


def test_an_agent_with_the_right_plan_makes_its_calls_and_no_other():
    world = ShopWorld(SHOPS[0], tasks=40)
    loop = play(world, RightPlans(world, 6), 6)
    assert (loop.solved, loop.first_try) == (1, 1)
    assert loop.calls == sum(len(attempt.request.plan) for attempt in world.attempts(6)) / 40


def test_words_in_common_save_calls_and_wrong_calls_cost():
    world = ShopWorld(SHOPS[0], tasks=60)
    alone, helped = play(world, NoMemory(), 6), play(world, WordsInCommon(), 6)
    assert helped.calls < alone.calls
    assert alone.first_try < helped.first_try < 1
    assert all(played.calls <= BUDGET for played in (*alone.played, *helped.played))


def test_words_in_common_tells_the_newer_of_two_equals_first_and_no_failed_run_or_call():
    memory = WordsInCommon()
    first, second, refused = (Call(name, {}, "", ok=ok) for name, ok in (("a", True), ("b", True), ("c", False)))
    memory.keep(Run("mend the cup", (first, refused), succeeded=True, day=0, kind=""))
    memory.keep(Run("mend the cup", (second,), succeeded=True, day=0, kind=""))
    memory.keep(Run("mend the red cup", (refused,), succeeded=False, day=1, kind=""))
    assert memory.recall("mend the red cup", None) == [(second,), (first,)]
