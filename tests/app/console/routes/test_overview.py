"""The overview shows what the bank honestly has."""

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import httpx

from app.console.routes.overview import curves
from tests.app.console.pages import Page
from tests.app.console.weeks import WEEKS, add_weeks
from tests.service import AGENT, SETTLES_WITHIN_S, User


async def test_who_has_no_agent_yet_is_told_how_to_begin(console: httpx.AsyncClient):
    answer = await console.get("/console")
    assert answer.status_code == 200
    assert "/v1/retain" in answer.text


async def test_a_comparison_of_few_runs_begins_with_their_outcomes_and_draws_no_point(
    alice: User, console: httpx.AsyncClient
):
    await alice.retain("water the garden", reward=0.25, reward_source="user", tool_traces=[{"tool": "hose"}])
    await alice.settle()
    retrieved = await alice.retrieve("water the garden")
    await alice.retain(
        "water the garden again, and the roses", retrieval_id=retrieved["retrieval_id"], reward=1, reward_source="user"
    )
    await alice.settle()
    text = (await console.get("/console", params={"agent": AGENT})).text
    helped = text[text.index("Did memory help?") : text.index("Cases by state")]
    assert (
        "In the last half year, 1 run had a case (0 failed) and 1 run had none (1 failed). A comparison of their steps"
        " needs 9 more runs with a case and 9 more runs without a case."
    ) in helped
    assert "no proof" in helped
    assert "svg" not in Page(helped).elements
    assert "No week has enough runs so far." in helped
    assert '<td class="n">1.00</td><td class="n">\u2013</td><td class="n">1</td>' in helped


async def test_enough_runs_are_compared_by_steps_and_failures_beside_their_counts(
    alice: User, console: httpx.AsyncClient
):
    calls = [{"tool": "hose", "status": "error", "output": "no water"}, {"tool": "hose", "status": "ok"}]
    plants = ["rose", "tulip", "daisy", "lily", "iris", "poppy", "aster", "lotus", "peony", "viola"]
    for plant in plants:
        await alice.retain(f"water the {plant}", reward=0.25, reward_source="user", tool_traces=calls)
    await alice.settle()
    for plant in plants:
        shown = (await alice.retrieve(f"water the {plant}"))["retrieval_id"]
        more = {"retrieval_id": shown, "reward": 1, "reward_source": "user", "tool_traces": calls[1:]}
        await alice.retain(f"water the {plant} in the other garden", **more)
    await alice.settle()
    text = (await console.get("/console", params={"agent": AGENT})).text
    assert (
        "In the last half year, 10 runs had a case (0 failed; 1.0 steps on average, 0.0 failed calls) and 10 runs had"
        " none (10 failed; 2.0 steps on average, 1.0 failed calls)."
    ) in text
    assert "1.00 with a case, 0.25 without a case" in text
    assert {"svg", "title", "desc", "table"} <= Page(text).elements


def test_a_chart_tells_of_the_newest_week_that_has_runs_by_its_date():
    weeks = [datetime(2026, 1, 5, tzinfo=UTC) + timedelta(weeks=number) for number in range(26)]
    row: Any = SimpleNamespace(week=2, shown=True, runs=6, steps=3, steps_sd=None, rewarded=0)
    drawn = curves(weeks, [row])[1].chart()
    assert drawn is not None
    assert "Week of 12 Jan: 3.00 with a case, too few runs without a case." in drawn.description


async def write_about(alice: User, *names: str) -> None:
    """Retains for each name a run of one of three kinds, which a word tells; the worker makes and replays the cases."""
    for number, name in enumerate(names):
        word, tool = (("broken", "refund"), ("early", "cancel"), ("small", "exchange"))[number % 3]
        calls = [{"tool": "find_order", "status": "ok"}, {"tool": tool, "status": "ok"}]
        await alice.retain(f"{name} writes about the lamp that is {word}", tool_traces=calls)
    await alice.settle()


async def replayed(alice: User, runs: int) -> dict[str, Any]:
    """Returns the replay of so many runs, which the worker makes after the cases are ready."""
    async with asyncio.timeout(SETTLES_WITHIN_S):
        while True:
            found = (await alice.http.get("/v1/policy", params={"agent": AGENT})).json()["replay"]
            if found is not None and found["runs"] == runs:
                return found
            await asyncio.sleep(0.05)


async def test_orders_are_compared_in_a_sentence_and_a_table_from_ten_replayed_runs_on(
    alice: User, console: httpx.AsyncClient
):
    names = ("anna", "ben", "carla", "dev", "eva", "finn", "gina", "hugo", "iris", "jan", "kim", "leo", "mia", "nils")
    await write_about(alice, *names[:6])
    few = (await replayed(alice, 6))["questions"]
    text = (await console.get("/console")).text
    assert f"So far, {few} runs that went well had an earlier run with a similar plan." in text
    assert "would have stood first" not in text
    await write_about(alice, *names[6:])
    told = await replayed(alice, len(names))
    text = (await console.get("/console")).text
    shown = text[text.index('id="replay"') : text.index('id="helped"')]
    assert told["sentence"] in shown
    assert all(0 <= each["low"] <= each["first"] <= each["high"] <= 1 for each in told["orders"])
    choice = told["orders"][-1]
    assert f"({choice['low']:.0%} to {choice['high']:.0%}), which serves" in told["sentence"]
    assert choice["high"] - choice["low"] < 1
    assert shown.count('<th scope="row">') == len(told["orders"])
    assert (shown.count("serves</span>"), shown.count("chosen now</span>")) == (1, 1)
    words = shown[shown.index("Words that tell your kinds of tasks apart:") :]
    assert all(f"<bdi>{word}</bdi>" in words for word in ("broken", "early", "small"))


async def test_an_agent_that_makes_no_comparison_by_lot_names_the_setting_that_starts_it(
    alice: User, console: httpx.AsyncClient
):
    await alice.retain("water the garden")
    assert "Compared with these" not in (text := (await console.get("/console")).text)
    assert (
        '<a href="/console/user?agent=operator">share of slates changed at random</a> is above 0; here it is 0' in text
    )
    assert (await alice.http.put(f"/v1/profiles/{AGENT}", json={"explore": 0.1})).status_code == 200
    assert "Compared with these: <strong>cannot say yet: " in (await console.get("/console")).text


async def test_the_order_that_replay_chose_is_no_trained_policy(alice: User, console: httpx.AsyncClient):
    await alice.retain("water the garden")
    text = (await console.get("/console")).text
    tiles = text[text.index('<dl class="figures">') : text.index("</dl>")]
    assert "trained policy in service" in tiles
    assert "none" in tiles
    assert "replay-1" not in tiles


async def test_no_tile_gives_a_share_without_saying_of_what(alice: User, console: httpx.AsyncClient):
    await alice.retain("water the garden", reward=1, reward_source="user")
    await alice.settle()
    await alice.retrieve("water the garden")
    text = (await console.get("/console")).text
    tiles = text[text.index('<dl class="figures">') : text.index("</dl>")]
    assert "%" not in tiles
    assert "1 returned a case" in tiles


async def test_an_agent_without_runs_has_an_overview(alice: User, console: httpx.AsyncClient):
    turns = {"agent": AGENT, "turns": [{"role": "user", "content": "hello"}]}
    assert (await alice.http.post("/v1/sessions/monday/turns", json=turns)).status_code == 200
    text = (await console.get("/console")).text
    assert "0 runs had a case and 0 runs had none" in text
    assert "No run ended in the last half year" in text


async def test_what_memory_added_is_drawn_with_its_interval_and_told_in_a_table(
    alice: User, console: httpx.AsyncClient
):
    await alice.retain("water the garden")
    await alice.settle()
    await alice.retrieve("water the garden")
    now = datetime.now(UTC)
    async with alice.service.runtime.database.as_user(alice.name, now) as connection:
        await add_weeks(connection, alice.name, AGENT, now)
    text = (await console.get("/console", params={"agent": AGENT})).text
    drawn = text[
        text.index("<h3>Reward added by memory so far</h3>") : text.index("<h3>Runs with and without cases</h3>")
    ]
    assert "Reward added by memory per decision, so far" in drawn
    assert drawn.count('class="dot dot-1"') == drawn.count('class="bar bar-1"') == drawn.count('<th scope="row">')
    assert drawn.count('<th scope="row">') >= WEEKS
    assert drawn.count('class="grid zero"') == 1
    assert "for a single look" in text


async def test_an_agent_that_the_user_does_not_have_is_not_there(alice: User, bob: User, console: httpx.AsyncClient):
    await bob.retain("tune a piano", agent="bobs-agent")
    answer = await console.get("/console", params={"agent": "bobs-agent"})
    assert answer.status_code == 404
    assert "piano" not in answer.text


async def test_the_console_opens_on_the_agent_used_last(alice: User, console: httpx.AsyncClient):
    await alice.retain("tune a piano", agent="a-tuner")
    await alice.retain("water the garden", agent="gardener")
    assert "Overview <span" in (text := (await console.get("/console")).text)
    assert "<bdi>gardener</bdi></span>" in text
    turns = {"agent": "a-tuner", "turns": [{"role": "user", "content": "hello"}]}
    assert (await alice.http.post("/v1/sessions/monday/turns", json=turns)).status_code == 200
    assert "<bdi>a-tuner</bdi></span>" in (await console.get("/console")).text
