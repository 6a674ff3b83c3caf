"""The overview shows what the bank honestly has."""

import httpx

from tests.app.conftest import AGENT, User
from tests.app.console.pages import Page


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
    assert "left empty: <strong>cannot say yet: " in text
    assert {"svg", "title", "desc", "table"} <= page.elements
    assert "1.00 where a case was shown, 0.25 where none was shown" in text


async def test_what_memory_added_is_drawn_with_its_interval_and_told_in_a_table(
    alice: User, console: httpx.AsyncClient
):
    await alice.http.put(f"/v1/profiles/{AGENT}", json={"explore": 0.5})
    await alice.retain("water the garden")
    await alice.settle()
    for number in range(20):
        found = await alice.retrieve(f"water garden number {number}")
        await alice.feedback(retrieval_id=found["retrieval_id"], reward=number % 2)
    await alice.rows(
        "DELETE FROM decision_slots WHERE user_sub = :user_sub AND decision_id IN"
        " (SELECT id FROM decisions WHERE user_sub = :user_sub ORDER BY id LIMIT 10) RETURNING place"
    )
    await alice.rows("UPDATE decisions SET slate_propensity = 0.5 WHERE user_sub = :user_sub RETURNING id")
    text = (await console.get("/console", params={"agent": AGENT})).text
    assert "Reward that memory added per decision, so far" in text
    assert "The numbers: what memory added, so far" in text
    assert "for one look" in text


async def test_an_agent_that_the_user_does_not_have_is_not_there(alice: User, bob: User, console: httpx.AsyncClient):
    await bob.retain("tune a piano", agent="bobs-agent")
    answer = await console.get("/console", params={"agent": "bobs-agent"})
    assert answer.status_code == 404
    assert "piano" not in answer.text
