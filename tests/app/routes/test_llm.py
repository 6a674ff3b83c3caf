"""The service with a language model: queries rewritten, runs explained, all tokens accounted for, no outage felt."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import exists, select, text

from retrieval.tables.metadata import USER_TABLES
from tests.fakes.chat_server import COMPLETION_TOKENS, PROMPT_TOKENS, ChatFault, ChatServer
from tests.fakes.openai_server import Fault
from tests.lessons import FIXED, LEARNED, RECORD
from tests.service import AGENT, Service, User, with_model
from writer.rights.erase import erase

ASKED = PROMPT_TOKENS + COMPLETION_TOKENS
CHATTY = "Hi there! Could you please renew the certificate of the gateway? Thanks!"
BY_LLM = "Procedure for renewing a gateway certificate"
PER_DAY = 5_000


@pytest.fixture(scope="module")
def running_server() -> Iterator[ChatServer]:
    with ChatServer() as server:
        yield server


@pytest.fixture
def server(running_server: ChatServer) -> Iterator[ChatServer]:
    running_server.reset()
    running_server.says = lambda record: {"query": BY_LLM} if "said" in record else LEARNED
    yield running_server
    running_server.reset()


@pytest.fixture(scope="module")
async def service(
    database_url: str, tmp_path_factory: pytest.TempPathFactory, running_server: ChatServer
) -> AsyncIterator[Service]:
    home = tmp_path_factory.mktemp("home")
    async with with_model(home, database_url, running_server.base_url, llm_tokens_per_day=PER_DAY) as service:
        yield service


async def wish(user: User, **settings: Any) -> None:
    answer = await user.http.put(f"/v1/profiles/{AGENT}", json=settings)
    assert answer.status_code == 200, answer.text


async def usage(user: User, **query: Any) -> dict[str, Any]:
    answer = await user.http.get(f"/v1/profiles/{AGENT}/usage", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def learned(user: User) -> list[str]:
    """The names of the fixes."""
    names = "SELECT record->>'procedure_name' AS name FROM procedures WHERE user_sub = :user_sub AND level IS NULL"
    rows = await user.rows(names)
    return [row.name for row in rows]


async def retain_fixed(user: User) -> None:
    await user.retain(FIXED.task, tool_traces=list(FIXED.tool_traces))
    await user.settle()


# Rewriting


async def test_a_query_is_searched_for_as_it_is_unless_somebody_says_otherwise(server: ChatServer, alice: User):
    assert (await alice.retrieve(CHATTY))["rewritten"] is None
    assert server.asked == []


async def test_a_request_may_have_its_query_rewritten_and_the_log_has_both(server: ChatServer, alice: User):
    await alice.retain("renew the certificate of the gateway")
    await alice.settle()
    answer = await alice.retrieve(CHATTY, rewrite="llm")
    assert (answer["rewritten"], answer["mode"], answer["degraded"]) == (BY_LLM, "hybrid", [])
    assert await alice.queries() == [(CHATTY, BY_LLM)]


async def test_what_is_searched_for_is_the_rewritten_query(server: ChatServer, alice: User):
    await alice.retain("bake a sourdough bread")
    await alice.settle()
    server.says = lambda _: {"query": "bake a sourdough bread"}
    (case,) = (await alice.retrieve("the usual, please", rewrite="llm"))["cases"]
    assert case["similarity"] == pytest.approx(1, abs=1e-3)


async def test_a_query_for_two_requests_keeps_what_each_names_though_the_model_drops_one(
    server: ChatServer, alice: User
):
    await alice.retain("repair run_migration after ORA-00942")
    await alice.settle()
    said = "Hi! Please renew the certificate of the gateway. Then look why run_migration stops with ORA-00942."
    answer = await alice.retrieve(said, rewrite="llm")
    assert answer["rewritten"] == f"{BY_LLM}, run_migration, ORA-00942"
    assert [case["task"] for case in answer["cases"]] == ["repair run_migration after ORA-00942"]


async def test_without_a_model_each_request_of_a_message_keeps_its_words(alice: User):
    said = "Please renew the certificate of the gateway. Then look why run_migration stops with ORA-00942."
    answer = await alice.http.post("/v1/rewrite", json={"agent": AGENT, "query": said, "rewrite": "off"})
    assert answer.json()["query"] == said


async def test_a_profile_may_want_every_query_rewritten_from_now_on_and_no_more(server: ChatServer, alice: User):
    for wanted, searched in (("llm", BY_LLM), ("off", None), ("llm", BY_LLM)):
        await wish(alice, rewrite=wanted)
        assert (await alice.retrieve(CHATTY))["rewritten"] == searched
    assert (await alice.retrieve(CHATTY, rewrite="off"))["rewritten"] is None


async def test_a_profile_in_use_is_not_asked_for_its_wish_and_tells_it_with_each_retrieve(
    server: ChatServer, alice: User
):
    await wish(alice, rewrite="off")
    await alice.retrieve(CHATTY)
    async with alice.service.runtime.database.as_user(alice.name, datetime.now(UTC)) as connection:
        await connection.execute(
            text("UPDATE profiles SET rewrite = 'llm' WHERE user_sub = :user"), {"user": alice.name}
        )
    assert (await alice.retrieve(CHATTY))["rewritten"] is None  # what another process changed is not known yet
    assert (await alice.retrieve(CHATTY))["rewritten"] == BY_LLM


async def test_the_model_never_sees_a_secret_of_the_query(server: ChatServer, alice: User):
    await alice.retrieve("log in as ada@example.com with password=hunter2secret!", rewrite="llm")
    told = server.asked[0]["messages"][1]["content"]
    assert "hunter2" not in told
    assert "ada@" not in told


@pytest.mark.parametrize(
    "fault", [Fault.STATUS_401, Fault.STATUS_429_WAIT_240, ChatFault.PROSE, ChatFault.REFUSAL], ids=lambda f: f.name
)
async def test_a_rewriter_that_fails_costs_the_rewriting_and_not_the_search(
    server: ChatServer, alice: User, fault: Any
):
    await alice.retain("renew the certificate of the gateway")
    await alice.settle()
    server.fault = fault
    answer = await alice.retrieve(CHATTY, rewrite="llm")
    assert (answer["rewritten"], answer["mode"], answer["degraded"]) == (None, "hybrid", ["rewriter"])
    assert len(answer["cases"]) == 1


async def test_workflows_may_rewrite_without_searching(server: ChatServer, alice: User):
    expected = {"llm": (BY_LLM, "llm"), "off": (CHATTY, "off"), None: (CHATTY, "off")}
    for rewrite, (query, by) in expected.items():
        answer = await alice.http.post("/v1/rewrite", json={"agent": AGENT, "query": CHATTY, "rewrite": rewrite})
        assert answer.json() == {"query": query, "rewritten_by": by, "degraded": []}
    server.fault = Fault.STATUS_401
    answer = await alice.http.post("/v1/rewrite", json={"agent": AGENT, "query": CHATTY, "rewrite": "llm"})
    assert answer.json() == {"query": CHATTY, "rewritten_by": "off", "degraded": ["rewriter"]}


# Explaining


async def test_a_profile_that_wants_a_model_has_its_failures_explained_by_it(server: ChatServer, alice: User):
    await wish(alice, analyst="llm")
    await retain_fixed(alice)
    assert RECORD["procedure_name"] in await learned(alice)


async def test_a_profile_that_did_not_ask_for_a_model_costs_it_nothing(server: ChatServer, alice: User):
    await retain_fixed(alice)
    assert len(await learned(alice)) == 1
    assert server.asked == []
    assert (await usage(alice))["usage"] == []


async def test_a_model_that_fails_costs_its_words_and_not_the_lesson(server: ChatServer, alice: User):
    server.fault = Fault.STATUS_401
    await wish(alice, analyst="llm")
    await retain_fixed(alice)
    (name,) = await learned(alice)
    assert name != RECORD["procedure_name"]


# Tokens


async def test_an_owner_sees_the_tokens_of_each_day_and_purpose(server: ChatServer, alice: User, bob: User):
    await wish(alice, analyst="llm")
    await retain_fixed(alice)
    await alice.retrieve(CHATTY, rewrite="llm")
    server.fault = ChatFault.PROSE
    await alice.retrieve(CHATTY, rewrite="llm")
    seen = await usage(alice)
    spent = {entry.pop("purpose"): entry for entry in seen["usage"]}
    day = spent["rewrite"].pop("day")
    assert spent["rewrite"] == {
        "calls": 2,
        "failures": 1,
        "prompt_tokens": 3 * PROMPT_TOKENS,
        "completion_tokens": 3 * COMPLETION_TOKENS,
    }
    assert spent["analyse"]["calls"] == 1
    assert spent["analyse"]["day"] == day
    total = sum(entry["prompt_tokens"] + entry["completion_tokens"] for entry in spent.values())
    assert seen["tokens_left_today"] == PER_DAY - total
    assert await usage(bob) == {"tokens_left_today": PER_DAY, "usage": []}


async def test_calls_at_once_are_all_written_down(server: ChatServer, alice: User):
    await asyncio.gather(*(alice.retrieve(CHATTY, rewrite="llm") for _ in range(8)))
    (entry,) = (await usage(alice))["usage"]
    assert (entry["calls"], entry["prompt_tokens"]) == (8, 8 * PROMPT_TOKENS)


async def test_without_tokens_the_model_is_not_asked_and_everything_still_works(server: ChatServer, alice: User):
    await wish(alice, rewrite="llm", analyst="llm", llm_tokens_per_day=ASKED)
    assert (await alice.retrieve(CHATTY))["rewritten"] == BY_LLM
    answer = await alice.retrieve(CHATTY)
    assert (answer["rewritten"], answer["degraded"]) == (None, ["rewriter"])
    await retain_fixed(alice)
    (name,) = await learned(alice)
    assert name != RECORD["procedure_name"]
    assert len(server.asked) == 1
    assert (await usage(alice))["tokens_left_today"] == 0


async def test_yesterdays_tokens_are_seen_and_do_not_count_today(server: ChatServer, alice: User):
    await wish(alice, llm_tokens_per_day=ASKED)
    await alice.retrieve(CHATTY, rewrite="llm")
    async with alice.service.runtime.database.as_user(alice.name, datetime.now(UTC)) as connection:
        await connection.execute(text("UPDATE llm_usage SET day = day - 1 WHERE user_sub = :u"), {"u": alice.name})
    assert (await alice.retrieve(CHATTY, rewrite="llm"))["rewritten"] == BY_LLM
    assert len((await usage(alice))["usage"]) == 2
    assert len((await usage(alice, days=1))["usage"]) == 1


async def test_each_profile_has_tokens_of_its_own(server: ChatServer, alice: User):
    await wish(alice, llm_tokens_per_day=0)
    assert (await alice.retrieve(CHATTY, rewrite="llm"))["degraded"] == ["rewriter"]
    other = await alice.http.post("/v1/retrieve", json={"agent": "another", "query": CHATTY, "rewrite": "llm"})
    assert other.json()["rewritten"] == BY_LLM


# Erasure


async def test_of_a_user_who_is_erased_while_the_model_is_asked_nothing_is_stored(server: ChatServer, alice: User):
    await wish(alice, analyst="llm")
    entered, released = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def says(_record: dict[str, Any]) -> Any:
        loop.call_soon_threadsafe(entered.set)
        asyncio.run_coroutine_threadsafe(released.wait(), loop).result(timeout=60)
        return LEARNED

    server.says = says
    await alice.retain(FIXED.task, tool_traces=list(FIXED.tool_traces))
    await asyncio.wait_for(entered.wait(), 60)
    await erase(alice.service.runtime.database, alice.name)
    released.set()
    server.says = lambda _: LEARNED
    afterwards = await alice.service.user()
    await wish(afterwards, analyst="llm")
    await retain_fixed(afterwards)  # the worker has come through with what it had before
    async with alice.service.runtime.database.as_user(alice.name, datetime.now(UTC)) as connection:
        for table in USER_TABLES:
            assert await connection.scalar(select(exists().where(table.c.user_sub == alice.name))) is False, table.name


async def test_an_erased_user_cannot_have_a_query_rewritten(server: ChatServer, alice: User):
    await erase(alice.service.runtime.database, alice.name)
    answer = await alice.http.post("/v1/rewrite", json={"agent": AGENT, "query": CHATTY, "rewrite": "llm"})
    assert answer.status_code == 410
    assert server.asked == []
