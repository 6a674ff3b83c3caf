"""A bank that learns from its own runs which order tells a plan that works first, from retain to the first page."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load, save
from typer.testing import CliRunner

from app.cli import cli
from tests.service import AGENT, SETTLES_WITHIN_S, User
from writer.run import LONGEST_TASK

KINDS = {
    "broken": [{"tool": "find_order", "input": {}}, {"tool": "refund", "input": {"method": "original"}}],
    "early": [{"tool": "find_order", "input": {}}, {"tool": "cancel_order", "input": {}}],
    "small": [{"tool": "find_order", "input": {}}, {"tool": "exchange", "input": {"size": "larger"}}],
}
CUSTOMERS = ("anna", "ben", "carla", "dev")
GOODS = ("lamp", "shirt", "phone")


def task(number: int, word: str) -> str:
    return f"{CUSTOMERS[number % 4]} writes about the {GOODS[number // 4 % 3]} that is {word}"


async def shop(alice: User, count: int) -> None:
    """Retains runs of three kinds; who writes about what is shared by unlike kinds."""
    for number in range(count):
        word = list(KINDS)[number * 7 % 3]
        traces = [{**call, "status": "ok", "output": "done"} for call in KINDS[word]]
        await alice.retain(task(number, word), tool_traces=traces, outcome="success")
    await alice.settle()


async def replay(alice: User) -> dict | None:
    answer = await alice.http.get("/v1/policy", params={"agent": AGENT})
    assert answer.status_code == 200, answer.text
    return answer.json()["replay"]


async def replayed(alice: User, runs: int) -> dict:
    """Returns the replay of so many runs, which the worker makes after the cases are ready."""
    async with asyncio.timeout(SETTLES_WITHIN_S):
        while (found := await replay(alice)) is None or found["runs"] != runs:  # noqa: ASYNC110 - the worker tells nobody
            await asyncio.sleep(0.05)
    return found


async def test_the_first_place_has_the_plan_of_the_tasks_kind_and_says_by_which_word(alice: User):
    await shop(alice, 18)
    for number, (word, calls) in enumerate(KINDS.items(), start=40):
        slate = (await alice.retrieve(task(number, word)))["cases"]
        assert slate[0]["task"].endswith(word)
        assert f"“{word}”" in slate[0]["why"]
        assert "its plan worked in 6 of 6 like it" in slate[0]["why"]
        plans = [tuple(each["plan"]) for each in slate]
        assert len(plans) == len(set(plans)) == len(KINDS), calls


@pytest.mark.parametrize(("outcome", "reward"), [("failure", 1.0), ("success", 0.5)])
async def test_a_plan_worked_in_a_run_if_whoever_judged_the_run_said_so(outcome: str, reward: float, alice: User):
    case_id = await alice.retain(task(0, "broken"), tool_traces=KINDS["broken"], outcome=outcome)
    await alice.settle()
    await alice.feedback(case_id=case_id, reward=reward)
    (told,) = (await alice.retrieve(task(1, "broken")))["cases"]
    assert "its plan worked in 1 of 1 like it" in told["why"]


async def test_a_success_that_the_user_calls_a_failure_stands_behind_the_others_as_a_warning(alice: User):
    await shop(alice, 6)
    wrong = [{"tool": "escalate", "input": {}, "status": "ok", "output": "done"}]
    case_id = await alice.retain(task(7, "broken"), tool_traces=wrong, outcome="success")
    await alice.settle()
    before = (await alice.retrieve(task(7, "broken")))["cases"]
    assert before[0]["case_id"] == case_id
    await alice.feedback(case_id=case_id, reward=0.0)
    after = (await alice.retrieve(task(7, "broken")))["cases"]
    assert after[-1]["case_id"] == case_id
    assert "this run failed, kept as a warning" in after[-1]["why"]


async def test_a_run_that_rewards_itself_below_a_half_for_its_length_is_a_success_all_the_same(alice: User):
    for number in range(12):
        word = list(KINDS)[number % 3]
        traces = [{**call, "status": "ok", "output": "done"} for call in KINDS[word]]
        await alice.retain(task(number, word), tool_traces=traces, outcome="success", reward=0.25)
    await alice.settle()
    assert (await replayed(alice, 12))["questions"] > 0
    told = (await alice.retrieve(task(60, "broken")))["cases"][0]
    assert told["task"].endswith("broken")
    assert "its plan worked in 4 of 4 like it" in told["why"]


async def test_each_plan_takes_one_place_however_many_runs_have_it(alice: User):
    await shop(alice, 18)
    slate = (await alice.retrieve(task(50, "broken")))["cases"]
    assert sorted(each["task"].split()[-1] for each in slate) == sorted(KINDS)


async def test_the_replay_is_told_in_a_sentence_with_every_order_and_the_words_that_tell_kinds_apart(alice: User):
    assert await replay(alice) is None
    await shop(alice, 24)
    told = await replayed(alice, 12)  # the others repeat one of them
    assert told["questions"] < told["runs"]  # the first run of each kind has none before it with its plan
    asked = f"On the last {told['questions']} runs that went well and had an earlier run with a plan like their own, "
    assert told["sentence"].startswith(f"{asked}a plan that worked")
    assert {each["order"] for each in told["orders"]} > {"words", "meaning", "vote", "choice"}
    assert told["serves"] in {each["order"] for each in told["orders"]}
    by_name = {each["order"]: each["first"] for each in told["orders"]}
    assert by_name["choice"] >= by_name["words"]
    assert set(told["telling_words"][:3]) == set(KINDS)


async def test_runs_with_and_without_a_case_are_counted_before_it_is_told_how_many_are_missing(alice: User):
    await alice.retain(task(0, "broken"))
    await alice.settle()
    answer = (await alice.http.get("/v1/policy", params={"agent": AGENT})).json()
    assert answer["compared"].startswith("In the last half year, 0 runs had a case and 1 run had none (0 failed).")
    assert "10 more runs with a case and 9 more runs without a case" in answer["compared"]


async def test_the_command_tells_the_sentence_the_words_and_the_comparison(
    alice: User, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    await shop(alice, 12)
    told = await replayed(alice, 12)
    monkeypatch.setenv("CASEBANK_HOME", str(tmp_path))
    monkeypatch.setenv("DATABASE_URL", str(alice.service.settings.database_url))
    monkeypatch.setenv("CASEBANK_MASTER_KEY", alice.service.settings.master_key_bytes.hex())
    words = ("policy", "show", "--user", alice.name, "--agent", AGENT)
    shown = await asyncio.to_thread(CliRunner().invoke, cli, words)
    assert told["sentence"] in shown.stdout
    assert f"words that tell the kinds of tasks apart: {', '.join(told['telling_words'])}" in shown.stdout
    assert "0 runs had a case and 12 runs had none" in shown.stdout


async def test_a_new_way_stands_first_a_few_runs_after_the_rules_changed(alice: User):
    await shop(alice, 18)
    replaced = [{"tool": "replace", "input": {"ship": True}, "status": "ok", "output": "done"}]
    retained = [
        await alice.retain(task(number, "broken"), tool_traces=replaced, reward=1.0, reward_source="user")
        for number in range(100, 104)
    ]
    await alice.settle()
    slate = (await alice.retrieve("frida writes about the table that is broken"))["cases"]
    assert slate[0]["case_id"] in retained


MANY_WORDS = " ".join(f"word{number}" for number in range(LONGEST_TASK))[:LONGEST_TASK]
"""Some 2,300 distinct words, the longest task that the service takes."""


@pytest.mark.parametrize("text", ["?", "a", MANY_WORDS, "\u4ece\u5317\u4eac\u98de\u5230\u4e0a\u6d77"])
async def test_a_task_of_one_word_of_many_or_without_spaces_is_replayed_and_found(text: str, alice: User):
    await alice.retain(text, tool_traces=[{"tool": "act", "status": "ok", "output": "done"}], outcome="success")
    await alice.settle()
    assert (await replayed(alice, 1))["sentence"].startswith("Nothing can be replayed yet")
    assert (await alice.retrieve(text))["cases"]


def of_another_version(fit: bytes) -> bytes:
    """Returns the fit as a version with one channel more would have stored it."""
    arrays = load(fit)
    return save(arrays | {"weights": np.append(arrays["weights"], np.float32(1))})


@pytest.mark.parametrize("changed", [of_another_version, lambda _fit: b"nothing"])
async def test_where_another_version_stored_the_replay_the_first_order_serves_and_none_is_shown(
    changed: Callable[[bytes], bytes], alice: User
):
    await shop(alice, 12)
    await replayed(alice, 12)
    ((fit,),) = await alice.rows("SELECT fit FROM replays WHERE user_sub = :user_sub")
    await alice.rows("UPDATE replays SET fit = :fit WHERE user_sub = :user_sub RETURNING true", fit=changed(fit))
    assert await replay(alice) is None
    slate = (await alice.retrieve(task(50, "broken")))["cases"]
    assert sorted(each["task"].split()[-1] for each in slate) == sorted(KINDS)
