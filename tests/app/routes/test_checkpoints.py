"""Checkpoints of a backend's graphs are kept as they are given, by thread, and are their user's alone."""

import asyncio
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
from sqlalchemy import event, text

from tests.service import AGENT, Service, User
from writer.profiles import Profile
from writer.rights.erase import erase
from writer.rights.export import export
from writer.upkeep.prune import prune

SECRET = "password=hunter2x and AKIAIOSFODNN7EXAMPLE"


def numbered(number: int) -> str:
    return str(UUID(int=number))


async def put(user: User, thread: str, number: int, *parts: dict[str, Any], **more: Any) -> httpx.Response:
    body = {"agent": AGENT, "thread_id": thread, "checkpoint_id": numbered(number), "parts": list(parts), **more}
    return await user.http.put("/v1/checkpoints", json=body)


async def listed(user: User, **query: Any) -> dict[str, Any]:
    answer = await user.http.get("/v1/checkpoints", params={"agent": AGENT, **query})
    assert answer.status_code == 200, answer.text
    return answer.json()


def numbers(page: dict[str, Any]) -> list[int]:
    return [UUID(each["checkpoint_id"]).int for each in page["checkpoints"]]


async def test_a_checkpoint_is_answered_as_it_was_given_with_the_writes_pending_on_it(alice: User):
    write = {"task_id": "t", "place": 1, "value": f"write {SECRET}"}
    state = f"\u0000 {SECRET}"
    assert (await put(alice, "Thread", 1, {"value": state}, namespace="a|b")).status_code == 204
    assert (await put(alice, "Thread", 1, write, namespace="a|b")).status_code == 204
    (kept,) = (await listed(alice, thread_id="Thread"))["checkpoints"]
    assert (kept["thread_id"], kept["namespace"]) == ("Thread", "a|b")
    assert kept["parts"] == [{"task_id": "", "place": 0, "value": state}, write]
    for other in ({"thread_id": "thread"}, {"namespace": ""}, {"checkpoint_id": numbered(2)}, {"agent": "another"}):
        assert (await listed(alice, **other))["checkpoints"] == []


async def test_a_part_is_replaced_unless_the_first_one_wins(alice: User):
    for value, wins in (("one", False), ("two", False), ("three", True)):
        assert (await put(alice, "again", 1, {"value": value, "first_wins": wins})).status_code == 204
    (kept,) = (await listed(alice))["checkpoints"]
    assert [part["value"] for part in kept["parts"]] == ["two"]


async def test_many_parts_take_as_many_statements_as_two(alice: User, service: Service):
    statements: list[str] = []
    engine = service.runtime.database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", lambda _c, _u, statement, *_: statements.append(statement))
    for many in (2, 40):
        statements.clear()
        parts = [{"task_id": "t", "place": place, "value": "v", "first_wins": place % 2 == 0} for place in range(many)]
        assert (await put(alice, "many", many, {"value": "state"}, *parts)).status_code == 204
        assert len([each for each in statements if "INTO checkpoints" in each]) == 2
    assert [len(each["parts"]) for each in (await listed(alice))["checkpoints"]] == [41, 3]


async def test_pages_have_the_largest_id_first_across_threads_and_namespaces(alice: User):
    for number in range(1, 6):
        for thread in ("a", "b"):
            assert (await put(alice, thread, number, {"value": "v"})).status_code == 204
    seen, page = list[int](), await listed(alice, limit=3)
    while page["next_cursor"]:
        seen += numbers(page)
        page = await listed(alice, limit=3, cursor=page["next_cursor"])
    assert seen + numbers(page) == [5, 5, 4, 4, 3, 3, 2, 2, 1, 1]
    assert numbers(await listed(alice, thread_id="a", before=numbered(3))) == [2, 1]
    answer = await alice.http.get("/v1/checkpoints", params={"agent": AGENT, "cursor": "x.y"})
    assert answer.status_code == 422


async def test_writers_of_one_thread_at_once_lose_nothing(alice: User):
    parts = [{"task_id": f"t{task}", "value": "v"} for task in range(20)]
    answers = await asyncio.gather(
        *(put(alice, "busy", number % 4 + 1, {"value": "v"}, *parts[:: 1 - number % 2 * 2]) for number in range(16))
    )
    assert {answer.status_code for answer in answers} == {204}
    page = await listed(alice, thread_id="busy")
    assert [len(each["parts"]) for each in page["checkpoints"]] == [21] * 4


async def test_a_thread_is_its_users_alone_and_deleted_for_good(alice: User, bob: User):
    assert (await put(alice, "hers", 1, {"value": "v"})).status_code == 204
    assert (await put(bob, "hers", 2, {"value": "w"})).status_code == 204
    assert numbers(await listed(bob, thread_id="hers")) == [2]
    for _ in range(2):
        answer = await bob.http.delete("/v1/checkpoints", params={"agent": AGENT, "thread_id": "hers"})
        assert answer.status_code == 204
    assert (await listed(bob))["checkpoints"] == []
    assert numbers(await listed(alice, thread_id="hers")) == [1]


async def test_a_thread_without_a_new_checkpoint_for_session_ttl_days_is_pruned_whole(alice: User, service: Service):
    for thread in ("old", "new"):
        for number in (1, 2):
            assert (await put(alice, thread, number, {"value": "v"}, agent="keeper")).status_code == 204
    database = service.runtime.database
    async with database.as_user(alice.name, datetime.now(UTC)) as connection:
        old = text(
            "UPDATE checkpoints SET created_at = now() - interval '8 days' WHERE id IN (SELECT id FROM checkpoints"
            " ORDER BY id LIMIT 3)"
        )  # both of the old thread, and the first of the new one
        await connection.execute(old)
    profile = Profile(alice.name, "keeper", datetime.now(UTC))
    assert (await prune(database, profile, now=datetime.now(UTC)))["checkpoints"] == 0
    assert (await alice.http.put("/v1/profiles/keeper", json={"session_ttl_days": 7})).status_code == 200
    assert (await prune(database, profile, now=datetime.now(UTC)))["checkpoints"] == 2
    assert {each["thread_id"] for each in (await listed(alice, agent="keeper"))["checkpoints"]} == {"new"}
    assert len((await listed(alice, agent="keeper"))["checkpoints"]) == 2


async def test_what_is_too_large_or_switched_off_is_refused_and_nothing_is_kept(alice: User):
    assert (await put(alice, "t" * 501, 1, {"value": "v"})).status_code == 422
    assert (await put(alice, "t", 1)).status_code == 422
    assert (await put(alice, "t", 1, {"value": "v" * (33 << 20)})).status_code == 413
    assert (await alice.http.put(f"/v1/profiles/{AGENT}", json={"enabled": False})).status_code == 200
    assert (await put(alice, "t", 1, {"value": "v"})).status_code == 409
    assert await alice.rows("SELECT 1 FROM checkpoints WHERE user_sub = :user_sub") == []


async def test_a_checkpoint_holds_no_more_parts_and_bytes_than_a_session(alice: User, service: Service):
    assert (await put(alice, "many", 1, {"value": "state"})).status_code == 204
    copies = text(
        "INSERT INTO checkpoints (id, task, place, user_sub, agent_key, key_id, thread, namespace, checkpoint_id,"
        " words) SELECT gen_random_uuid(), 't', number, user_sub, agent_key, key_id, thread, namespace,"
        " checkpoint_id, words FROM checkpoints, generate_series(2, 10000) AS number"
    )
    async with service.runtime.database.as_user(alice.name, datetime.now(UTC)) as connection:
        await connection.execute(copies)
    assert (await put(alice, "many", 1, {"value": "another state"})).status_code == 204  # in place of the first
    refused = await put(alice, "many", 1, {"task_id": "t", "value": "one more"})
    assert (refused.status_code, "over 10000 parts" in refused.json()["detail"]) == (413, True)
    quarter = {"task_id": "t", "value": "v" * ((4 << 20) - 1_000)}
    answers = [await put(alice, "long", 1, {**quarter, "place": place}) for place in range(5)]
    assert [answer.status_code for answer in answers] == [204] * 4 + [413]
    assert (await put(alice, "long", 2, quarter)).status_code == 204


async def test_a_page_of_large_checkpoints_ends_before_its_limit_and_the_cursor_goes_on(alice: User):
    half = [{"task_id": "t", "place": number, "value": "v" * (3 << 20)} for number in range(2)]
    for number in range(1, 5):
        assert (await put(alice, "large", number, {"value": "state"})).status_code == 204
        for part in half:
            assert (await put(alice, "large", number, part)).status_code == 204
    seen, page = list[list[int]](), await listed(alice)
    while page["next_cursor"]:
        seen.append(numbers(page))
        page = await listed(alice, cursor=page["next_cursor"])
    assert [*seen, numbers(page)] == [[4, 3], [2, 1]]
    sizes = [[len(part["value"]) for part in each["parts"]] for each in page["checkpoints"]]
    assert sizes == [[5, 3 << 20, 3 << 20]] * 2


async def test_an_export_has_its_words_the_disk_has_none_and_a_purge_leaves_nothing(alice: User, service: Service):
    assert (await put(alice, "my thread", 1, {"value": "my state"})).status_code == 204
    (row,) = await alice.rows("SELECT * FROM checkpoints WHERE user_sub = :user_sub")
    assert b"my" not in b"".join(value for value in row if isinstance(value, bytes))
    runtime = service.runtime
    exported = [each async for each in export(runtime.database, runtime.keyring, alice.name)]
    (kept,) = [each for each in exported if each["type"] == "checkpoints"]
    assert (kept["thread_id"], kept["value"]) == ("my thread", "my state")
    assert (await erase(runtime.database, alice.name)).clean
    assert await alice.rows("SELECT 1 FROM checkpoints WHERE user_sub = :user_sub") == []
