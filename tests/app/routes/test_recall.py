"""Recall finds what was said and what is known, across sessions, with its source; and nothing of anybody else's."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import httpx
import pytest
from sqlalchemy import delete, update

from retrieval.recall.memory import RecallQuestion
from retrieval.tables.memories import memories
from retrieval.tokens import count_tokens
from tests.service import AGENT, Service, User
from writer.queue.memories import unlocked
from writer.rights.erase import erase
from writer.rights.export import export

PIANO = "The piano in the hall needs tuning before the concert."


@pytest.fixture
def name() -> str:
    return f"chat {uuid4()}"


async def say(user: User, name: str, *said: str, **more: Any) -> None:
    turns = [{"role": "user", "content": text, **more} for text in said]
    answer = await user.http.post(f"/v1/sessions/{name}/turns", json={"agent": AGENT, "turns": turns})
    assert answer.status_code == 200, answer.text


async def ask(user: User, query: str, **more: Any) -> httpx.Response:
    return await user.http.post("/v1/recall", json={"agent": AGENT, "query": query, **more})


async def recalled(user: User, query: str, **more: Any) -> dict[str, Any]:
    answer = await ask(user, query, **more)
    assert answer.status_code == 200, answer.text
    return answer.json()


CHANGED = {
    "When does the technician come?": [
        ("user", "I need a technician."),
        ("assistant", "I booked the technician for Thursday 14:00."),
        ("user", "Thursday is bad. Can we do Friday 15:00 instead?"),
        ("assistant", "Done: Friday 15:00."),
    ],
    "Which hotel did we choose?": [
        ("user", "Which hotel is near the fair?"),
        ("assistant", "The hotel Adler is near the fair, I chose it."),
        ("user", "Too loud."),
        ("assistant", "Then the Ibis."),
    ],
}


@pytest.mark.parametrize("query", CHANGED)
@pytest.mark.parametrize("others", [0, 30])
async def test_what_was_agreed_after_a_turn_comes_with_it(alice: User, name: str, query: str, others: int):
    turns = [{"role": role, "content": text} for role, text in CHANGED[query]]
    answer = await alice.http.post(f"/v1/sessions/{name}/turns", json={"agent": AGENT, "turns": turns})
    assert answer.status_code == 200
    if others:
        await say(
            alice, f"{name} 2", *(f"Dinner {number} was fine, come and choose again." for number in range(others))
        )
    await alice.settle("sessions", "memories")
    found = await recalled(alice, query, kinds=["turn"])
    numbers = [each["source"]["turn_number"] for each in found["memories"] if each["source"]["session_id"] == name]
    assert {2, 3, 4} <= set(numbers)
    assert [each["rank"] for each in found["memories"]] == list(range(1, len(found["memories"]) + 1))
    assert len(found["memories"]) <= 10


async def test_what_was_said_after_a_time_does_not_come_with_what_was_said_before(alice: User, name: str):
    for day, (role, text) in enumerate(CHANGED["When does the technician come?"], start=1):
        turn = {"role": role, "content": text, "time": f"2026-03-0{day}T10:00:00Z"}
        await alice.http.post(f"/v1/sessions/{name}/turns", json={"agent": AGENT, "turns": [turn]})
    await alice.settle("sessions", "memories")
    found = await recalled(alice, "When does the technician come?", kinds=["turn"], as_of="2026-03-02T12:00:00Z")
    assert {each["source"]["turn_number"] for each in found["memories"]} == {1, 2}


async def test_a_turn_is_found_across_sessions_with_where_and_when_it_was_said(alice: User, name: str):
    await say(alice, name, "Good morning!", PIANO, time="2026-03-01T10:00:00Z")
    await say(alice, f"{name} 2", "Lunch was fine today.")
    await alice.settle("sessions", "memories")
    found = await recalled(alice, "When is the piano tuned?", kinds=["turn"])
    best = found["memories"][0]
    assert (best["kind"], best["text"], best["rank"]) == ("turn", PIANO, 1)
    source = {key: value for key, value in best["source"].items() if value is not None}
    assert source == {"session_id": name, "turn_number": 2, "role": "user", "said_at": "2026-03-01T10:00:00Z"}
    assert best["similarity"] is not None
    assert found["sessions"][0]["session_id"] == name
    assert found["tokens"] == sum(count_tokens(each["text"]) for each in found["memories"])


async def test_what_was_just_said_is_found_by_its_words_before_it_has_a_vector(alice: User, name: str):
    await say(alice, name, PIANO)
    assert [each["text"] for each in (await recalled(alice, "piano"))["memories"]] == [PIANO]


async def test_a_fact_is_found_with_its_id_and_when_it_held(alice: User):
    body = {"agent": AGENT, "kind": "goal", "attribute": "save", "unit": "EUR"}
    march = {**body, "text": "I want to save 300 EUR", "value": "300", "valid_from": "2026-03-01T00:00:00Z"}
    may = {**body, "text": "I want to save 500 EUR", "value": "500", "valid_from": "2026-05-01T00:00:00Z"}
    old, new = [(await alice.http.post("/v1/facts", json=fact)).json()["fact_id"] for fact in (march, may)]
    now = (await recalled(alice, "save EUR", kinds=["fact"]))["memories"]
    then = (await recalled(alice, "save EUR", kinds=["fact"], as_of="2026-04-01T00:00:00Z"))["memories"]
    assert [each["source"]["fact_id"] for each in now] == [new]
    assert [(each["source"]["fact_id"], each["source"]["valid_to"]) for each in then] == [(old, "2026-05-01T00:00:00Z")]


async def test_as_of_leaves_out_what_was_said_later_and_a_session_what_was_said_elsewhere(alice: User, name: str):
    await say(alice, name, "The piano is black.", time="2026-03-01T10:00:00Z")
    await say(alice, f"{name} 2", "The piano is white.", time="2026-05-01T10:00:00Z")
    await alice.settle("sessions", "memories")
    then = await recalled(alice, "piano", kinds=["turn"], as_of="2026-04-01T00:00:00Z")
    there = await recalled(alice, "piano", kinds=["turn"], session_id=f"{name} 2")
    assert [each["text"] for each in then["memories"]] == ["The piano is black."]
    assert [each["text"] for each in there["memories"]] == ["The piano is white."]


async def test_a_rare_word_counts_more_than_one_that_every_turn_has(alice: User, name: str):
    await say(alice, name, *(f"The meeting about budget {number} was long." for number in range(8)))
    await say(alice, name, "A marimba arrived.", "The meeting was short.")
    await alice.settle("sessions", "memories")
    found = await recalled(alice, "meeting marimba", kinds=["turn"], top_k=1)
    assert [each["text"] for each in found["memories"]] == ["A marimba arrived."]


@pytest.mark.parametrize(
    ("query", "answer"),
    [
        ("What is the refund policy, in how many days are refunds paid?", "Refunds are paid within 14 days."),
        ("Am I allergic to peanuts?", "I'm allergic to peanuts."),
    ],
)
async def test_the_only_memory_of_its_kind_comes_before_turns_with_fewer_words_of_the_question(
    alice: User, name: str, query: str, answer: str
):
    rule = {"category": "shop", "title": "Refund policy", "text": "Refunds are paid within 14 days."}
    await alice.http.post("/v1/knowledge", json={"agent": AGENT, **rule})
    await alice.http.post("/v1/facts", json={"agent": AGENT, "kind": "fact", "text": "I'm allergic to peanuts."})
    await say(alice, name, *(f"Customer {number} wants a refund." for number in range(15)))
    await say(alice, name, *(f"We sold peanuts to guest {number}." for number in range(15)))
    await say(alice, name, *(f"Order {number} has shipped." for number in range(30)))
    await alice.settle("sessions", "memories")
    best = (await recalled(alice, query))["memories"][0]
    assert best["text"].endswith(answer)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("nginx", "The settings are in /etc/nginx/nginx.conf there."),
        ("main.py", "Deploy src/app/main.py once more."),
        ("failover", "See https://wiki.example.com/runbooks/failover for it."),
        ("server", "We chose the client/server setup."),
        ("Foo", "It failed in Foo.bar() again."),
        ("src/app/main.py", "Deploy src/app/main.py once more."),
    ],
)
async def test_a_turn_is_found_by_a_word_in_a_path_or_an_address(alice: User, name: str, query: str, said: str):
    await say(alice, name, said, role="system")
    found = await replace(alice.service.runtime.reader, pgvector=False).recall(
        alice.name, datetime.now(UTC), RecallQuestion(AGENT, query)
    )
    assert [each.text for each in found.memories] == [said]


async def test_what_has_nothing_to_do_with_the_question_is_not_found(alice: User, name: str):
    await say(alice, name, PIANO)
    await alice.settle("sessions", "memories")
    assert (await recalled(alice, "quarterly tax declaration"))["memories"] == []


async def test_the_budget_leaves_memories_out_whole_and_says_how_many(alice: User, name: str):
    await say(alice, name, PIANO, f"{PIANO} And again.")
    found = await recalled(alice, "piano", kinds=["turn"], token_budget=count_tokens(PIANO))
    assert ([each["text"] for each in found["memories"]], found["left_out"]) == ([PIANO], 1)


async def test_nobody_recalls_what_another_user_said_nor_what_another_agent_was_told(alice: User, bob: User, name: str):
    await say(alice, name, PIANO)
    assert (await recalled(bob, "piano"))["memories"] == []
    elsewhere = await alice.http.post("/v1/recall", json={"agent": "another", "query": "piano"})
    assert elsewhere.json() == {"memories": [], "sessions": [], "tokens": 0, "left_out": 0, "degraded": []}


async def test_a_profile_whose_memory_is_off_recalls_nothing(alice: User, name: str):
    await say(alice, name, PIANO)
    await alice.http.put(f"/v1/profiles/{AGENT}", json={"enabled": False})
    assert (await recalled(alice, "piano"))["memories"] == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"query": ""},
        {"query": "piano", "top_k": 0},
        {"query": "piano", "top_k": 101},
        {"query": "piano", "kinds": []},
        {"query": "piano", "kinds": ["case"]},
        {"query": "piano", "token_budget": -1},
        {"query": "piano", "as_of": "2026-04-01T00:00:00"},
        {"query": "piano", "weights": {}},
    ],
)
async def test_a_question_out_of_its_limits_is_a_problem_document(alice: User, wrong: dict[str, Any]):
    answer = await alice.http.post("/v1/recall", json={"agent": AGENT, **wrong})
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")


async def test_a_deleted_session_and_a_deleted_fact_are_found_no_more(alice: User, name: str):
    await say(alice, name, PIANO)
    fact = {"agent": AGENT, "kind": "fact", "text": "plays the piano"}
    fact_id = (await alice.http.post("/v1/facts", json=fact)).json()["fact_id"]
    await alice.settle("sessions", "memories")
    assert len((await recalled(alice, "piano"))["memories"]) == 2
    await alice.http.delete(f"/v1/sessions/{name}")
    await alice.http.delete(f"/v1/facts/{fact_id}")
    assert (await recalled(alice, "piano"))["memories"] == []
    assert await alice.rows("SELECT 1 FROM memories WHERE user_sub = :user_sub") == []


async def test_no_text_stands_in_the_table_of_what_is_found(alice: User, name: str):
    await say(alice, name, PIANO)
    rows = await alice.rows("SELECT search_text, search_vector::text FROM memories WHERE user_sub = :user_sub")
    ((text, stems),) = rows
    assert text == ""
    assert "'piano'" in stems


async def test_an_export_has_the_vectors_and_a_purge_leaves_none(service: Service, alice: User, name: str):
    await say(alice, name, PIANO)
    await alice.settle("sessions", "memories")
    runtime = service.runtime
    lines = [row async for row in export(runtime.database, runtime.keyring, alice.name) if row["type"] == "memories"]
    assert [(row["kind"], row["turn_number"], len(row["embedding"])) for row in lines] == [("turn", 1, 256)]
    receipt = await erase(runtime.database, alice.name)
    assert receipt.clean
    assert receipt.rows["memories"] == 1


async def test_the_worker_passes_over_a_memory_that_is_being_deleted_and_never_waits_for_it(alice: User, name: str):
    await say(alice, name, PIANO, "Lunch was fine today.")
    await alice.settle("sessions", "memories")
    first, second = [
        row.id for row in await alice.rows("SELECT id FROM memories WHERE user_sub = :user_sub ORDER BY id")
    ]
    token, database = uuid4(), alice.service.runtime.database
    async with database.as_user(alice.name, datetime.now(UTC)) as held:
        await held.execute(update(memories).where(memories.c.user_sub == alice.name).values(lease_token=token))
    async with database.as_user(alice.name, datetime.now(UTC)) as deleting:
        await deleting.execute(delete(memories).where(memories.c.user_sub == alice.name, memories.c.id == first))
        async with database.as_user(alice.name, datetime.now(UTC)) as working:
            free = await working.scalars(unlocked(alice.name, [first, second], token))
            assert list(free) == [second]
