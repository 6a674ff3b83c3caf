"""The overview shows what the bank honestly has."""

from datetime import UTC, datetime

import httpx

from tests.app.console.pages import Page
from tests.app.console.weeks import WEEKS, add_weeks
from tests.service import AGENT, User


async def test_who_has_no_agent_yet_is_told_how_to_begin(console: httpx.AsyncClient):
    answer = await console.get("/console")
    assert answer.status_code == 200
    assert "/v1/retain" in answer.text


async def test_runs_that_were_shown_a_case_stand_beside_those_that_were_not(alice: User, console: httpx.AsyncClient):
    await alice.retain("water the garden", reward=0.25, reward_source="user", tool_traces=[{"tool": "hose"}])
    await alice.settle()
    retrieved = await alice.retrieve("water the garden")
    await alice.retain(
        "water the garden again, and the roses", retrieval_id=retrieved["retrieval_id"], reward=1, reward_source="user"
    )
    await alice.settle()
    text = (await console.get("/console", params={"agent": AGENT})).text
    page = Page(text)
    assert "Did memory help?" in text
    assert "no proof" in text
    assert "Compared with them: <strong>cannot say yet: " in text
    assert {"svg", "title", "desc", "table"} <= page.elements
    assert "1.00 with a case, 0.25 without a case" in text


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
