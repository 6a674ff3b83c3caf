"""What is known of a user is on one page, over all agents, and each memory can be deleted there."""

import asyncio
import tracemalloc

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from tests.app.console.conftest import sign_in
from tests.app.console.furnish import furnish
from tests.app.console.pages import Page, send
from tests.service import Service, User


async def _known(console: httpx.AsyncClient, **query: str) -> str:
    answer = await console.get("/console/known", params=query)
    assert answer.status_code == 200, answer.text
    return answer.text


async def test_each_page_leads_to_what_is_known_of_me(alice: User, console: httpx.AsyncClient):
    things = await furnish(alice)
    for address in [*things.pages(), "/console/nowhere"]:
        links = Page((await console.get(address)).text).links
        assert any(link.startswith("/console/known") for link in links), address


async def test_memories_of_all_agents_and_kinds_are_listed(alice: User, console: httpx.AsyncClient):
    await furnish(alice, "restart the web server", agent="operator")
    await furnish(alice, "water the garden", agent="gardener")
    text = await _known(console, agent="operator")
    for words in ("restart the web server", "water the garden"):
        assert text.count(words) >= 4, words
    assert "Agent <bdi>gardener</bdi>" in text


@pytest.mark.parametrize("kind", ["facts", "cases", "sessions", "knowledge"])
async def test_a_search_finds_a_memory_of_each_kind_by_a_word_in_it(alice: User, console: httpx.AsyncClient, kind: str):
    await furnish(alice, "restart the web server", agent="operator")
    await furnish(alice, "water the garden", agent="gardener")
    text = await _known(console, q="GARDEN wat", kind=kind)
    assert "water the garden" in text
    assert "restart the web server" not in text
    assert "No match." in await _known(console, q="piano", kind=kind)


async def test_a_search_reads_every_turn_of_a_session(alice: User, console: httpx.AsyncClient):
    turns = [{"role": "user", "content": word} for word in ("hello", "I play the oboe", "bye")]
    body = {"agent": "operator", "turns": turns}
    assert (await alice.http.post("/v1/sessions/monday/turns", json=body)).status_code == 200
    assert "monday" in await _known(console, q="oboe", kind="sessions")
    assert "monday" not in await _known(console, q="cello", kind="sessions")


async def test_a_search_reads_the_calls_and_the_parts_of_a_turn(alice: User, console: httpx.AsyncClient):
    call = {"id": "1", "type": "function", "function": {"name": "book", "arguments": '{"instrument": "bassoon"}'}}
    parts = [{"type": "text", "text": "and a piccolo"}, {"type": "text", "text": "please"}]
    turns = [
        {"role": "assistant", "content": "I book it.", "tool_calls": [call]},
        {"role": "user", "content": parts},
        {"role": "assistant", "content": None, "refusal": "No tuba."},
    ]
    body = {"agent": "operator", "turns": turns}
    assert (await alice.http.post("/v1/sessions/monday/turns", json=body)).status_code == 200
    for word in ("bassoon", "piccolo", "tuba"):
        assert "monday" in await _known(console, q=word, kind="sessions"), word


async def test_a_turn_that_was_changed_in_the_database_says_so(alice: User, console: httpx.AsyncClient):
    for name in ("monday", "friday"):
        body = {"agent": "operator", "turns": [{"role": "user", "content": f"hello on {name}"}]}
        assert (await alice.http.post(f"/v1/sessions/{name}/turns", json=body)).status_code == 200
    one = "session_id = (SELECT id FROM sessions WHERE user_sub = :user_sub AND name = 'monday')"
    await alice.damage("turns", "payload", one)
    text = await _known(console, kind="sessions")
    assert "hello on friday" in text
    assert "hello on monday" not in text
    assert "unreadable" in text


async def test_a_search_holds_the_turns_of_one_session_at_a_time(alice: User, console: httpx.AsyncClient):
    words = "oboe" * (1 << 16)
    for number in range(20):
        body = {"agent": "operator", "turns": [{"role": "user", "content": words}]}
        assert (await alice.http.post(f"/v1/sessions/{number}/turns", json=body)).status_code == 200
    assert "No match." in await _known(console, q="cello", kind="sessions")
    tracemalloc.start()
    try:
        assert "No match." in await _known(console, q="cello", kind="sessions")
        peak = tracemalloc.get_traced_memory()[1]
        assert peak < 20 * len(words)
    finally:
        tracemalloc.stop()


async def test_a_memory_of_each_kind_is_deleted_from_the_page_and_leads_back_to_it(
    alice: User, console: httpx.AsyncClient
):
    things = await furnish(alice)
    addresses = {
        "facts": f"/console/facts/{things.fact_id}/delete",
        "cases": f"/console/cases/{things.case_id}/delete",
        "sessions": "/console/session/delete",
        "knowledge": f"/console/knowledge/{things.knowledge_id}/delete",
    }
    kept = {
        "facts": f"/v1/facts/{things.fact_id}",
        "cases": f"/v1/cases/{things.case_id}",
        "sessions": str(httpx.URL(f"/v1/sessions/{things.session}")),
        "knowledge": f"/v1/knowledge/{things.knowledge_id}",
    }
    for kind, address in addresses.items():
        form = Page(await _known(console, kind=kind, q="restart")).form(address)
        assert (await send(console, form)).status_code == 422, kind
        assert (await alice.http.get(kept[kind])).status_code == 200, kind
        answer = await send(console, form, **form.boxes)
        assert answer.status_code == 303, kind
        assert answer.headers["location"].startswith("/console/known?agent=operator&q=restart&kind=" + kind)
        assert (await alice.http.get(kept[kind])).status_code == 404, kind


async def test_a_deletion_leads_to_no_page_elsewhere(alice: User, console: httpx.AsyncClient):
    things = await furnish(alice)
    form = Page(await _known(console, kind="facts")).form(f"/console/facts/{things.fact_id}/delete")
    answer = await send(console, form, **form.boxes, back="https://evil.example/console")
    assert answer.headers["location"] == "/console/facts?agent=operator"


async def test_many_memories_are_paged(alice: User, console: httpx.AsyncClient):
    for number in range(30):
        entry = {"agent": "operator", "category": "garden", "type": "rule", "text": f"plant number {number}"}
        assert (await alice.http.post("/v1/knowledge", json=entry)).status_code == 201
    overall = await _known(console)
    assert overall.count("plant number") == 5
    for query in ({}, {"q": "plant"}):
        seen, address = list[str](), str(httpx.URL("/console/known", params={"kind": "knowledge", **query}))
        while address:
            text = (await console.get(address)).text
            seen += [part.split("<", 1)[0] for part in text.split("plant number ")[1:]]
            address = next((link for link in Page(text).links if "cursor=" in link), "")
        assert seen == [str(number) for number in reversed(range(30))]


async def test_an_export_has_a_turn_to_its_end_and_a_user_has_one_at_a_time(
    service: Service, alice: User, console: httpx.AsyncClient
):
    await furnish(alice)
    form = Page(await _known(console)).form("/console/known/export")
    turns, running = service.runtime.admission.turns, list[int]()

    async def watched(scope: Scope, receive: Receive, send_on: Send) -> None:
        async def answer(message: Message) -> None:
            if message.get("body") and turns:
                running.append(turns.running)
            await send_on(message)

        await service.app(scope, receive, answer)

    transport = httpx.ASGITransport(watched, client=("127.0.0.1", 50_000))
    async with httpx.AsyncClient(transport=transport, base_url=console.base_url, cookies=console.cookies) as http:
        assert (await send(http, form)).status_code == 200
        assert running
        assert set(running) == {1}
    answers = await asyncio.gather(*(send(console, form) for _ in range(3)))
    assert sorted(answer.status_code for answer in answers) == [200, 429, 429]
    assert (await send(console, form)).status_code == 200
    assert (await send(console, form, form_token="another")).status_code == 403


async def test_another_user_sees_nothing_of_it(service: Service, alice: User, bob: User):
    await furnish(alice, "restart the xylophone")
    http = await sign_in(service, service.token(bob.name))
    for query in ({}, {"q": "xylophone"}, {"kind": "sessions", "q": "xylophone"}):
        assert "restart the xylophone" not in await _known(http, **query)
