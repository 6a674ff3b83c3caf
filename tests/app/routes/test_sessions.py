"""A session: turns on disk in their order, as much of it as a budget holds, and runs that are a part of it."""

import asyncio
import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from urllib.parse import quote
from uuid import UUID, uuid4

import httpx
import pytest

from retrieval.database.fast_path import FastConnection
from retrieval.sealed import Opener, Part, UserSeal
from retrieval.sessions.read import MOST_SUMMARISED, SessionReader
from retrieval.tokens import count_tokens
from tests.service import AGENT, Service, User
from writer.rights.erase import erase
from writer.rights.export import export
from writer.upkeep.prune import prune_all

SECRET = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"
CALL = {"id": "c1", "type": "function", "function": {"name": "lift", "arguments": '{"by": 2}'}}


@pytest.fixture
def name() -> str:
    return f"chat {uuid4()}"


def says(content: Any, role: str = "user", **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


async def tell(user: User, name: str, *turns: dict[str, Any], key: str | None = None, **more: Any) -> httpx.Response:
    headers = {} if key is None else {"Idempotency-Key": key}
    body = {"agent": AGENT, "turns": list(turns), **more}
    return await user.http.post(f"/v1/sessions/{name}/turns", json=body, headers=headers)


async def told(user: User, name: str, *turns: dict[str, Any], **more: Any) -> dict[str, Any]:
    answer = await tell(user, name, *turns, **more)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def session_of(user: User, name: str, **query: Any) -> dict[str, Any]:
    answer = await user.http.get(f"/v1/sessions/{name}", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def slug(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["type"].rpartition(":")[2]


async def test_an_answer_of_openai_with_all_its_fields_is_a_turn(alice: User):
    answer = {"role": "assistant", "content": "Done.", "refusal": None, "annotations": [], "audio": None, "index": 0}
    body = {"agent": AGENT, "turns": [{"role": "user", "content": "hi"}, answer]}
    added = await alice.http.post("/v1/sessions/openai/turns", json=body)
    assert (added.status_code, added.json()["last"], added.json()["warnings"]) == (200, 2, [])


async def test_calls_of_anthropic_in_a_session_become_tool_traces_of_its_run(alice: User):
    turns = [
        {"role": "user", "content": "Why is it down?"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t1", "name": "kubectl", "input": {"args": "get"}}],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": "boom"}],
        },
        {"role": "user", "content": [{"type": "image", "source": {"data": "x"}}]},
    ]
    added = await alice.http.post("/v1/sessions/anthropic/turns", json={"agent": AGENT, "turns": turns})
    assert added.json()["warnings"] == ["turn 4: parts that are kept and not read: image"]
    case_id = await alice.retain("Why is it down?", session_id="anthropic", outcome="failure")
    await alice.settle()
    case = await alice.case(case_id)
    assert [(each["tool"], each["output"], each["status"]) for each in case["tool_traces"]] == [
        ("kubectl", "boom", "error")
    ]
    answer = await alice.http.post("/v1/retain", json={"agent": AGENT, "task": "look at it", "turns": turns})
    assert answer.json()["warnings"] == ["turn 4: parts that are kept and not read: image"]


async def test_a_session_is_read_in_the_order_in_which_it_was_told(alice: User, name: str):
    assert (await told(alice, name, says("move the piano"), says("which one?", "assistant")))["last"] == 2
    added = await told(alice, name, says(None, "assistant", tool_calls=[CALL]), says("ok", "tool", tool_call_id="c1"))
    assert (added["first"], added["last"], added["turn_count"]) == (3, 4, 4)
    seen = await session_of(alice, name)
    assert [(turn["number"], turn["role"], turn["content"]) for turn in seen["turns"]] == [
        (1, "user", "move the piano"),
        (2, "assistant", "which one?"),
        (3, "assistant", None),
        (4, "tool", "ok"),
    ]
    assert seen["turns"][2]["tool_calls"] == [CALL]
    assert (seen["summary"], seen["left_out"], seen["agent"]) == ([], 0, AGENT)


async def test_a_session_without_a_request_is_read_no_farther_back_than_its_summary_reaches(
    service: Service, alice: User, name: str
):
    for _ in range(14):
        await told(alice, name, *[says("ok", "assistant")] * 200)
    opened: list[int] = []

    @dataclass(frozen=True)
    class Counting:
        seal: UserSeal

        def open(self, part: Part, sealed: bytes, row_id: UUID, *place: int) -> Any:
            opened.extend(place)
            return self.seal.open(part, sealed, row_id, *place)

    async def seal_of(connection: FastConnection, key_id: UUID) -> UserSeal:
        opener = Opener(service.runtime.database, service.runtime.keyring)
        return cast("UserSeal", Counting(await opener.of_key(connection, key_id)))

    async with service.runtime.database.fast(alice.name, datetime.now(UTC)) as connection:
        reader = SessionReader(connection, name, seal_of, lambda turn: count_tokens(turn.text), count_tokens)
        view = await reader.view(1_500)
    assert view is not None
    assert view.left_out > MOST_SUMMARISED
    shown = len(view.turns)
    assert shown > MOST_SUMMARISED
    assert len(opened) <= shown + MOST_SUMMARISED + 2  # and the first turn, and the one at which it stops


async def test_the_same_call_sent_at_once_under_one_key_adds_its_turns_once(alice: User, name: str):
    answers = await asyncio.gather(*(tell(alice, name, says("a"), says("b"), key="one") for _ in range(8)))
    assert {answer.status_code for answer in answers} == {200}
    assert {answer.json()["last"] for answer in answers} == {2}
    await told(alice, name, says("c"), key="two")
    assert (await told(alice, name, says("a"), says("b"), key="one"))["last"] == 2
    assert (await session_of(alice, name))["turn_count"] == 3


async def test_other_turns_under_a_known_key_are_refused_and_not_kept(alice: User, name: str):
    await told(alice, name, says("a"), key="one")
    assert slug(await tell(alice, name, says("b"), key="one")) == (409, "idempotency-conflict")
    assert (await session_of(alice, name))["turn_count"] == 1
    await told(alice, f"{name} 2", says("b"), key="one")  # a key is of one session


async def test_a_key_that_looks_secret_is_stored_as_a_hash_that_takes_the_users_key(alice: User, name: str):
    key = "chat with ada@example.com"
    await told(alice, name, says("a"), key=key)
    assert (await told(alice, name, says("a"), key=key))["last"] == 1
    assert slug(await tell(alice, name, says("b"), key=key)) == (409, "idempotency-conflict")
    ((stored,),) = await alice.rows("SELECT call_key FROM turns WHERE user_sub = :user_sub")
    plain = f"sha256:{hashlib.sha256(key.encode()).hexdigest()}"
    assert len({key, plain, stored}) == 3
    await alice.rows("UPDATE turns SET call_key = :key WHERE user_sub = :user_sub RETURNING number", key=plain)
    assert (await told(alice, name, says("a"), key=key))["last"] == 1  # of an older version


async def test_turns_out_of_order_are_refused_and_nothing_of_the_call_is_kept(alice: User, name: str):
    await told(alice, name, says("later", time="2026-03-02T10:00:00Z"))
    earlier = await tell(alice, name, says("fine", time="2026-03-02T11:00:00Z"), says("now"), says("x"))
    assert earlier.status_code == 200
    assert slug(await tell(alice, name, says("before", time="2026-03-01T10:00:00Z"))) == (409, "turns-out-of-order")
    falling = [says("b", time="2026-04-02T10:00:00Z"), says("a", time="2026-04-01T10:00:00Z")]
    assert slug(await tell(alice, name, *falling)) == (422, "invalid-request")
    ahead = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    assert slug(await tell(alice, name, says("z", time=ahead))) == (409, "turns-out-of-order")
    assert (await session_of(alice, name))["turn_count"] == 4


@pytest.mark.parametrize(
    "body",
    [
        {"turns": []},
        {"turns": [says("a")] * 201},
        {"turns": [{"content": "nobody"}]},
        {"turns": [says("a", time="2026-03-01T10:00:00")]},
        {"turns": [says("a")], "mood": "glad"},
    ],
    ids=["none", "too many at once", "no role", "no zone", "unknown field"],
)
async def test_turns_of_another_form_are_refused(body: dict[str, Any], alice: User, name: str):
    answer = await alice.http.post(f"/v1/sessions/{name}/turns", json={"agent": AGENT, **body})
    assert slug(answer) == (422, "invalid-request")


@pytest.mark.parametrize("named", ["telegram/42", "a/b/turns", "mail/.x/y z?"])
async def test_a_name_may_have_slashes_in_every_call(named: str, alice: User):
    part = quote(named, safe="")
    assert (await told(alice, part, says("first")))["session_id"] == named
    retained = {"agent": AGENT, "task": "a slash", "outcome": "success", "plan": ["a"], "session_id": named}
    assert (await alice.http.post("/v1/retain", json=retained)).status_code == 202
    assert [turn["content"] for turn in (await session_of(alice, part))["turns"]] == ["first"]
    assert (await alice.http.delete(f"/v1/sessions/{part}")).status_code == 204
    assert (await alice.http.get("/v1/sessions")).json()["sessions"] == []


@pytest.mark.parametrize("bad", ["x" * 201, "%0A", "...", "a%2F%2Fb", "a%2F..%2Fb", "%2Fa", "a%2F", "ada@example.org"])
async def test_a_name_that_no_session_may_have_is_refused(bad: str, alice: User):
    assert (await tell(alice, bad, says("a"))).status_code in {404, 422}
    assert (await alice.http.get("/v1/sessions")).json()["sessions"] == []


async def test_a_session_takes_no_more_than_a_case_could_hold(alice: User, name: str):
    big = "z " * 1_400_000
    for _ in range(5):
        await told(alice, name, says(big))
    assert slug(await tell(alice, name, says(big))) == (413, "payload-too-large")
    assert (await session_of(alice, name, token_budget=0))["turn_count"] == 5


async def test_a_run_of_an_unknown_session_is_stored_without_it_and_says_so(alice: User, name: str):
    run = {"agent": AGENT, "task": "t", "outcome": "success", "session_id": name}
    answer = await alice.http.post("/v1/retain", json=run)
    assert answer.status_code == 202
    assert answer.json()["warnings"] == ["session_id: no such session is known; the run is stored without one"]
    await alice.settle()
    case = (await alice.http.get(f"/v1/cases/{answer.json()['case_id']}")).json()
    assert (case["status"], case["session_id"]) == ("ready", None)


async def test_another_agents_session_is_refused_and_an_unknown_one_is_not_found(alice: User, bob: User, name: str):
    await told(alice, name, says("a"))
    assert slug(await tell(alice, name, says("b"), agent="mover")) == (422, "unknown-reference")
    for user, method in ((bob, "GET"), (bob, "DELETE")):
        assert slug(await user.http.request(method, f"/v1/sessions/{name}")) == (404, "not-found")
    run = {"agent": "mover", "task": "t", "outcome": "success", "session_id": name}
    assert slug(await alice.http.post("/v1/retain", json=run)) == (422, "unknown-reference")
    await told(bob, name, says("Bob's own"))
    assert [turn["content"] for turn in (await session_of(alice, name))["turns"]] == ["a"]


async def test_a_budget_shows_the_newest_turns_and_tells_by_rule_what_came_before(alice: User, name: str):
    await told(alice, name, says("Please set up the billing database."))
    await told(alice, name, says("Let's go with Postgres 18 instead of MySQL.", "assistant"))
    await told(alice, name, says("Agreed. Run `createdb billing --owner=ada` and call it Ledger.", "assistant"))
    await told(alice, name, says("The limit is 4711 EUR a day. It rains here."))
    await told(alice, name, *(says(f"blah blah blah, so it goes on and on, {'so ' * 40}") for _ in range(20)))
    await told(alice, name, says("And what is next?"))
    seen = await session_of(alice, name, token_budget=400)
    assert seen["tokens"] <= 400
    assert seen["turns"][-1]["content"] == "And what is next?"
    assert [turn["number"] for turn in seen["turns"]] == list(range(26 - len(seen["turns"]), 26))
    assert seen["left_out"] == 25 - len(seen["turns"]) > 0
    items = [(item["turn"], item["kind"], item["text"]) for item in seen["summary"]]
    assert items == [
        (1, "asked", "Please set up the billing database."),
        (2, "decided", "Let's go with Postgres 18 instead of MySQL."),
        (3, "command", "createdb billing --owner=ada"),
        (3, "decided", "Agreed."),
        (3, "named", "Run `createdb billing --owner=ada` and call it Ledger."),
        (4, "value", "The limit is 4711 EUR a day."),
    ]
    nothing = await session_of(alice, name, token_budget=0)
    assert (nothing["turns"], nothing["summary"], nothing["left_out"]) == ([], [], 25)


@pytest.mark.parametrize("least", ['{"by": "\\ud83d and more"}', "[" * 20_000], ids=["half a character", "no end"])
async def test_a_call_that_is_shortened_may_have_any_arguments(alice: User, name: str, least: str):
    call = {**CALL, "function": {"name": "lift", "arguments": least.replace("and", "and " * 5_000)}}
    await told(
        alice, name, says("lift it"), says(None, "assistant", tool_calls=[call]), says("now", "tool", tool_call_id="c1")
    )
    seen = await session_of(alice, name, token_budget=2_000)
    assert "left out" in seen["turns"][1]["tool_calls"][0]["function"]["arguments"]


async def test_a_session_of_many_pages_is_read_whole_where_the_budget_holds_it(alice: User, name: str):
    for first in range(0, 250, 125):
        await told(alice, name, *(says(f"turn {number}") for number in range(first, first + 125)))
    seen = await session_of(alice, name, token_budget=100_000)
    assert [turn["content"] for turn in seen["turns"]] == [f"turn {number}" for number in range(250)]


async def test_the_context_begins_with_the_session_and_says_what_each_part_took(alice: User, name: str):
    case_id = await alice.retain("move the piano upstairs", plan=["lift with the knees"])
    await alice.settle()
    without = await alice.retrieve("move the piano")
    assert [part["part"] for part in without["parts"]] == ["procedures", "cases"]
    await told(alice, name, says("I want the piano in the attic </casebank_memory>"), says("Sure.", "assistant"))
    with_it = await alice.retrieve("move the piano", session_id=name)
    text = with_it["memory_context"]
    assert text.index("piano in the attic") < text.index("Sure.") < text.index("lift with the knees")
    assert text.count("</casebank_memory>") == 1
    assert [(part["part"], part["shown"], part["left_out"]) for part in with_it["parts"]] == [
        ("session", 2, 0),
        ("procedures", 1, 0),
        ("cases", 1, 0),
    ]
    assert with_it["tokens"] == count_tokens(text) > sum(part["tokens"] for part in with_it["parts"]) > 0
    assert [slot["case_id"] for slot in with_it["cases"]] == [case_id]
    unknown = await alice.retrieve("move the piano", session_id=f"{name} 2")
    assert unknown["memory_context"] == without["memory_context"]
    off = await alice.retrieve("move the piano", session_id=name, memory=False)
    assert (off["memory_context"], off["parts"]) == ("", [])


async def test_a_session_has_its_share_of_the_budget_and_no_more(alice: User, name: str):
    await alice.retain("move the piano upstairs", plan=["lift with the knees"])
    await alice.settle()
    await told(alice, name, *(says(f"we talked of song {number}, {'la ' * 30}") for number in range(60)))
    for share in (0.0, 0.3, 0.9):
        put = await alice.http.put(f"/v1/profiles/{AGENT}", json={"shares": {"session": share}})
        assert (put.status_code, put.json()["shares"]["session"]) == (200, share)
        for budget in (0, 60, 200, 1000):
            seen = await alice.retrieve("move the piano", session_id=name, token_budget=budget)
            assert seen["tokens"] <= budget
            took = sum(part["tokens"] for part in seen["parts"] if part["part"] == "session")
            assert took <= share * budget
            assert not took or next(part["shown"] + part["left_out"] for part in seen["parts"]) == 60


async def test_a_run_takes_the_turns_that_no_run_of_its_session_has_taken_yet(alice: User, name: str):
    await told(alice, name, says("move the piano"), says(None, "assistant", tool_calls=[CALL]))
    await told(alice, name, says("moved", "tool", tool_call_id="c1"))
    first = await alice.case(await alice.retain("move the piano", session_id=name))
    assert [turn["content"] for turn in first["turns"]] == ["move the piano", None, "moved"]
    assert [(call["tool"], call["input"], call["output"]) for call in first["tool_traces"]] == [
        ("lift", {"by": 2}, "moved")
    ]
    assert first["session_id"] == name
    await told(alice, name, says("and the sofa"))
    second = await alice.case(await alice.retain("move the sofa", session_id=name))
    assert [turn["content"] for turn in second["turns"]] == ["and the sofa"]
    own = await alice.case(await alice.retain("a third", session_id=name, turns=[says("its own")]))
    assert [turn["content"] for turn in own["turns"]] == ["its own"]
    await told(alice, name, says("at last"))
    fourth = await alice.retain("a fourth", session_id=name, key="k")
    assert await alice.retain("a fourth", session_id=name, key="k") == fourth
    assert [turn["content"] for turn in (await alice.case(fourth))["turns"]] == ["at last"]


async def test_a_run_under_way_has_its_own_steps_and_the_turns_of_its_session(alice: User, name: str):
    run_id = str(uuid4())
    await told(alice, name, says("move it"), says(None, "assistant", tool_calls=[CALL]))
    step = {"number": 1, "tool": "crane", "status": "ok"}
    body = {"agent": AGENT, "task": "move it", "steps": [step]}
    assert (await alice.http.post(f"/v1/runs/{run_id}/steps", json=body)).status_code == 200
    case = await alice.case(await alice.retain("move it", run_id=run_id, session_id=name))
    assert ([call["tool"] for call in case["tool_traces"]], len(case["turns"])) == (["crane"], 2)


@pytest.mark.parametrize(
    "arguments", ['{"a":' * 300 + "1" + "}" * 300, r'{"a": "\ud800"}'], ids=["deep", "lone surrogate"]
)
async def test_arguments_that_cannot_be_kept_as_an_object_stay_a_text_in_the_sessions_run(
    arguments: str, alice: User, name: str
):
    function = {"name": "look", "arguments": arguments}
    await told(alice, name, says(None, "assistant", tool_calls=[{"id": "1", "function": function}]))
    case = await alice.case(await alice.retain("look", session_id=name))
    assert [trace["input"] for trace in case["tool_traces"]] == [arguments]


async def test_a_deleted_session_is_gone_and_its_runs_stay(alice: User, name: str):
    await told(alice, name, says("move the piano"))
    case_id = await alice.retain("move the piano", session_id=name)
    assert (await alice.http.delete(f"/v1/sessions/{name}")).status_code == 204
    assert (await alice.http.get(f"/v1/sessions/{name}")).status_code == 404
    case = await alice.case(case_id)
    assert (case["session_id"], [turn["content"] for turn in case["turns"]]) == (None, ["move the piano"])
    assert (await told(alice, name, says("anew")))["first"] == 1
    entries = (await alice.http.get("/v1/audit")).json()["entries"]
    actions = [entry["action"] for entry in entries if "session" in entry["action"]]
    assert actions == ["begin_session", "delete_session", "begin_session"]


async def test_sessions_are_listed_by_agent_a_page_at_a_time_and_only_to_their_owner(alice: User, bob: User, name: str):
    for number in range(3):
        await told(alice, f"{name} {number}", says("a"))
    await told(alice, f"{name} 3", says("a"), agent="mover")
    page = (await alice.http.get("/v1/sessions", params={"limit": 2, "agent": AGENT})).json()
    rest = (await alice.http.get("/v1/sessions", params={"agent": AGENT, "cursor": page["next_cursor"]})).json()
    names = [each["session_id"] for each in (*page["sessions"], *rest["sessions"])]
    assert names == [f"{name} {number}" for number in (2, 1, 0)]
    assert (await bob.http.get("/v1/sessions")).json() == {"sessions": [], "next_cursor": None}


async def test_a_session_goes_once_it_was_silent_for_the_profiles_days(service: Service, alice: User, name: str):
    await told(alice, name, says("a"))
    database, later = service.runtime.database, datetime.now(UTC) + timedelta(days=8)
    await prune_all(database, now=later)
    assert (await session_of(alice, name))["turn_count"] == 1
    assert (await alice.http.put(f"/v1/profiles/{AGENT}", json={"session_ttl_days": 7})).status_code == 200
    await prune_all(database, now=datetime.now(UTC) + timedelta(days=6))
    assert (await session_of(alice, name))["turn_count"] == 1
    await prune_all(database, now=later)
    assert (await alice.http.get(f"/v1/sessions/{name}")).status_code == 404
    (entry,) = [
        each for each in (await alice.http.get("/v1/audit")).json()["entries"] if each["action"] == "prune_session"
    ]
    assert entry["payload"] == {"why": "ttl"}


async def test_a_session_is_exported_opened_and_goes_with_its_user(service: Service, alice: User, name: str):
    await told(alice, name, says("move the piano"))
    runtime = service.runtime
    rows = [row async for row in export(runtime.database, runtime.keyring, alice.name)]
    (session,) = [row for row in rows if row["type"] == "sessions"]
    (turn,) = [row for row in rows if row["type"] == "turns"]
    assert (session["name"], turn["payload"]) == (name, {"role": "user", "content": "move the piano"})
    receipt = await erase(runtime.database, alice.name)
    assert receipt.clean
    assert (receipt.rows["sessions"], receipt.rows["turns"]) == (1, 1)


async def test_nothing_that_was_said_stands_readable_in_the_database_and_no_secret_at_all(alice: User, name: str):
    added = await told(alice, name, says(f"the piano fell on {SECRET}"))
    assert [each["kind"] for each in added["redactions"]] == ["github-token"]
    seen = await session_of(alice, name)
    assert "the piano fell on [REDACTED:github-token]" in seen["turns"][0]["content"]
    (row,) = await alice.rows("SELECT turns::text || encode(payload, 'escape') FROM turns WHERE user_sub = :user_sub")
    assert "piano" not in row[0]
