"""Knowledge of a domain is kept by category and type, found beside turns and facts, and is its user's alone."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import httpx
from sqlalchemy import update

from retrieval.tables.memories import memories
from tests.service import AGENT, Service, User
from writer.rights.erase import erase
from writer.rights.export import export

RATES = "The overnight rate of the savings account is 2.1 percent."
ENTRY = {"agent": AGENT, "category": "banking", "type": "rule", "title": "Savings", "text": RATES}


async def written(user: User, **more: Any) -> dict[str, Any]:
    answer = await user.http.post("/v1/knowledge", json={**ENTRY, **more})
    assert answer.status_code == 201, answer.text
    return answer.json()


async def listed(user: User, **query: Any) -> dict[str, Any]:
    answer = await user.http.get("/v1/knowledge", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def recalled(user: User, query: str, **more: Any) -> list[dict[str, Any]]:
    answer = await user.http.post("/v1/recall", json={"agent": AGENT, "query": query, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()["memories"]


def slug(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["type"].rpartition(":")[2]


async def test_a_title_looks_up_the_entry_that_it_would_update_and_no_other(alice: User, bob: User):
    entry = await written(alice)
    await written(alice, title="Loans")
    named = {name: entry[name] for name in ("agent", "category", "type")}
    for title in ("Savings", "  SAVINGS "):
        assert (await listed(alice, **named, title=title))["knowledge"] == [entry]
    for other in ({"title": "Sav"}, {"title": RATES}, {"title": "Savings", "type": "term"}):
        assert (await listed(alice, **{**named, **other}))["knowledge"] == []
    assert (await listed(bob, **named, title="Savings"))["knowledge"] == []
    secret = "AKIAIOSFODNN7EXAMPLE"
    kept = await written(alice, title=secret)
    assert (await listed(alice, **named, title=secret))["knowledge"] == [kept]
    for missing in ("category", "type"):
        rest = {name: value for name, value in named.items() if name != missing}
        for user in (alice, bob):
            answer = await user.http.get("/v1/knowledge", params={**rest, "title": "Savings"})
            assert slug(answer) == (422, "invalid-request")


async def test_an_entry_is_found_by_its_words_at_once_and_by_its_meaning_then_with_its_source(alice: User):
    entry = await written(alice)
    (told,) = await recalled(alice, "overnight rate")
    assert (told["kind"], told["text"]) == ("knowledge", f"Savings\n{RATES}")
    source = {name: value for name, value in told["source"].items() if value is not None}
    assert source == {"knowledge_id": entry["knowledge_id"], "category": "banking", "type": "rule", "shared": False}
    await alice.settle("memories")
    (told,) = await recalled(alice, "overnight rate", kinds=["knowledge"])
    assert told["similarity"] is not None
    assert await recalled(alice, "overnight rate", kinds=["fact", "turn"]) == []


async def test_knowledge_turns_and_facts_are_found_together(alice: User):
    await written(alice)
    fact = {"agent": AGENT, "kind": "fact", "text": "My savings account is with a small bank."}
    assert (await alice.http.post("/v1/facts", json=fact)).status_code == 201
    said = {"agent": AGENT, "turns": [{"role": "user", "content": "What does my savings account pay?"}]}
    assert (await alice.http.post(f"/v1/sessions/{uuid4()}/turns", json=said)).status_code == 200
    assert {each["kind"] for each in await recalled(alice, "savings account")} == {"knowledge", "fact", "turn"}


async def test_the_same_entry_again_is_updated_and_not_doubled(alice: User):
    first = await written(alice)
    again = await written(alice, title="SAVINGS", text="The rate is 1.9 percent now.")
    assert again["knowledge_id"] == first["knowledge_id"]
    (entry,) = (await listed(alice))["knowledge"]
    assert entry["text"] == "The rate is 1.9 percent now."
    assert await recalled(alice, "overnight") == []
    assert [each["text"] for each in await recalled(alice, "rate")] == ["SAVINGS\nThe rate is 1.9 percent now."]
    untitled = [await written(alice, title=None, text="Banks close on Sunday.") for _ in range(2)]
    assert untitled[0] == untitled[1]
    assert len((await listed(alice))["knowledge"]) == 2
    other = await written(alice, category="travel")
    assert other["knowledge_id"] != first["knowledge_id"]
    one, two = [await written(alice, category=each, type=kind) for each, kind in (("a b", "c"), ("a", "b c"))]
    assert one["knowledge_id"] != two["knowledge_id"]


async def test_what_is_written_again_unchanged_leaves_no_trace_in_queue_or_audit(alice: User):
    await written(alice)
    await alice.settle("memories")
    before = len((await alice.http.get("/v1/audit")).json()["entries"])
    await written(alice)
    assert await alice.rows("SELECT 1 FROM memories WHERE user_sub = :user_sub AND status = 'pending'") == []
    assert len((await alice.http.get("/v1/audit")).json()["entries"]) == before


async def test_pages_are_newest_first_and_filter_by_category_and_type(alice: User):
    ids = [(await written(alice, title=f"T{number}"))["knowledge_id"] for number in range(3)]
    await written(alice, type="term", title="T9")
    first = await listed(alice, type="rule", limit=2)
    assert [each["knowledge_id"] for each in first["knowledge"]] == ids[:0:-1]
    rest = await listed(alice, type="rule", limit=2, cursor=first["next_cursor"])
    assert ([each["knowledge_id"] for each in rest["knowledge"]], rest["next_cursor"]) == (ids[:1], None)
    assert (await listed(alice, category="travel"))["knowledge"] == []
    assert (await listed(alice, agent="another"))["knowledge"] == []


async def test_where_memory_is_not_written_no_entry_is_kept_or_changed(alice: User):
    entry = await written(alice)
    path = f"/v1/knowledge/{entry['knowledge_id']}"
    await alice.http.put(f"/v1/profiles/{AGENT}", json={"enabled": False})
    assert slug(await alice.http.post("/v1/knowledge", json={**ENTRY, "title": "Loans"})) == (409, "memory-off")
    assert slug(await alice.http.put(path, json={**ENTRY, "text": "Another."})) == (409, "memory-off")
    assert (await listed(alice))["knowledge"] == [entry]
    assert (await alice.http.delete(path)).status_code == 204


async def test_an_edit_is_found_and_what_it_replaced_is_not(alice: User, bob: User):
    entry = await written(alice)
    path = f"/v1/knowledge/{entry['knowledge_id']}"
    body = {**ENTRY, "title": "Giro", "text": "Transfers arrive the same day."}
    assert slug(await bob.http.put(path, json=body)) == (404, "not-found")
    changed = await alice.http.put(path, json=body)
    assert (changed.status_code, changed.json()["text"]) == (200, "Transfers arrive the same day.")
    assert changed.json()["knowledge_id"] == entry["knowledge_id"]
    assert await recalled(alice, "overnight") == []
    assert len(await recalled(alice, "transfers")) == 1
    await written(alice)
    assert slug(await alice.http.put(path, json=ENTRY)) == (409, "knowledge-exists")
    assert slug(await alice.http.put(path, json={**ENTRY, "agent": "another"})) == (404, "not-found")


async def test_a_deleted_entry_is_gone_and_nobody_else_can_delete_it(alice: User, bob: User):
    path = f"/v1/knowledge/{(await written(alice))['knowledge_id']}"
    assert slug(await bob.http.delete(path)) == (404, "not-found")
    assert await recalled(bob, "overnight rate") == []
    assert (await alice.http.delete(path)).status_code == 204
    assert slug(await alice.http.get(path)) == (404, "not-found")
    assert await recalled(alice, "overnight rate") == []
    actions = [each["action"] for each in (await alice.http.get("/v1/audit")).json()["entries"]]
    assert {"insert_knowledge", "delete_knowledge"} <= set(actions)


async def test_bad_input_is_a_problem_document_and_stores_nothing(alice: User):
    for wrong in ({"text": " "}, {"text": "x" * 8_193}, {"category": ""}, {"type": "x" * 101}, {"title": "x" * 201}):
        assert slug(await alice.http.post("/v1/knowledge", json={**ENTRY, **wrong})) == (422, "invalid-request"), wrong
    secret = {**ENTRY, "category": "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ"}
    assert slug(await alice.http.post("/v1/knowledge", json=secret)) == (422, "secret-in-name")
    assert (await listed(alice))["knowledge"] == []


async def test_its_words_are_sealed_exported_open_and_gone_after_a_purge(alice: User, service: Service):
    await written(alice)
    (stored,) = await alice.rows("SELECT * FROM knowledge WHERE user_sub = :user_sub")
    assert b"overnight" not in bytes(stored.words)
    runtime = service.runtime
    rows = [row async for row in export(runtime.database, runtime.keyring, alice.name)]
    (row,) = [row for row in rows if row["type"] == "knowledge"]
    assert (row["text"], row["title"], row["entry_type"]) == (RATES, "Savings", "rule")
    assert (await erase(runtime.database, alice.name)).clean
    assert await alice.rows("SELECT 1 FROM knowledge WHERE user_sub = :user_sub") == []


async def test_a_vector_of_another_model_is_made_anew(alice: User, service: Service):
    await written(alice)
    await alice.settle("memories")
    mine = update(memories).where(memories.c.user_sub == alice.name)
    async with service.runtime.database.as_user(alice.name, datetime.now(UTC)) as connection:
        await connection.execute(mine.values(model="another", status="pending"))
    service.runtime.worker.wake()
    await alice.settle("memories")
    (row,) = await alice.rows("SELECT model FROM memories WHERE user_sub = :user_sub")
    assert row.model == service.runtime.embedder.model
