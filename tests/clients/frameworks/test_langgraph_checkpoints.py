"""LangGraph's checkpointer, by their own conformance tests where they are installed, and in a graph."""

import asyncio
from typing import Any, TypedDict

import pytest

pytest.importorskip("langgraph", reason="langgraph is not installed: `make test-frameworks`")

from casebank_client import Casebank, CasebankRefused, CasebankUnreachable
from casebank_client.langgraph_checkpoints import CasebankSaver
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from tests.clients.frameworks.conftest import AGENT, Banked


def named(thread: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}


def chat(saver: CasebankSaver) -> Any:
    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(f"that was message {len(state['messages'])}")]}

    graph = StateGraph(MessagesState)
    graph.add_node("answer", answer)
    graph.add_edge(START, "answer")
    graph.add_edge("answer", END)
    return graph.compile(checkpointer=saver)


async def test_it_passes_langgraphs_own_conformance_tests(banked: Banked):
    conformance = pytest.importorskip("langgraph.checkpoint.conformance", reason="their tests are not installed")

    @conformance.checkpointer_test(name="CasebankSaver")
    async def ours() -> Any:
        yield CasebankSaver(banked.memory, AGENT)

    report = await conformance.validate(ours)
    base = {name: report.results[name] for name in ("put", "put_writes", "get_tuple", "list", "delete_thread")}
    assert {name: result.failures for name, result in base.items() if result.failures} == {}
    assert sum(result.tests_passed for result in base.values()) > 40


def test_a_thread_goes_on_in_another_process_and_with_its_secrets(banked: Banked):
    secret = "my card is 4111111111111111 and my key AKIAIOSFODNN7EXAMPLE"
    chat(CasebankSaver(banked.memory, AGENT)).invoke({"messages": [HumanMessage(secret)]}, named("one"))
    later = chat(CasebankSaver(banked.memory, AGENT))
    told = later.invoke({"messages": [HumanMessage("and?")]}, named("one"))["messages"]
    assert [each.content for each in told] == [secret, "that was message 1", "and?", "that was message 3"]
    assert len(list(later.get_state_history(named("one")))) == 6
    assert later.get_state(named("two")).values == {}


async def test_an_interrupted_graph_is_resumed_as_with_theirs(banked: Banked):
    class State(TypedDict):
        asked: str

    def ask(state: State) -> State:
        return {"asked": f"{state['asked']} {interrupt('sure?')}"}

    graph = StateGraph(State)
    graph.add_node("ask", ask)
    graph.add_edge(START, "ask")
    for saver in (CasebankSaver(banked.memory, AGENT), InMemorySaver()):
        compiled = graph.compile(checkpointer=saver)
        await compiled.ainvoke({"asked": "delete?"}, named("asking"))
        waiting = await compiled.aget_state(named("asking"))
        assert [task.interrupts[0].value for task in waiting.tasks] == ["sure?"]
        assert (await compiled.ainvoke(Command(resume="yes"), named("asking")))["asked"] == "delete? yes"
        assert (await compiled.ainvoke(Command(resume="no"), waiting.config))["asked"] == "delete? yes"
        await saver.adelete_thread("asking")
        assert [each async for each in saver.alist(named("asking"))] == []


async def test_two_writers_of_a_thread_keep_what_each_wrote(banked: Banked):
    savers = [CasebankSaver(banked.memory, AGENT) for _ in range(2)]
    ids = [empty_checkpoint() for _ in range(8)]
    await asyncio.gather(
        *(savers[place % 2].aput(named("busy"), each, {"step": place}, {}) for place, each in enumerate(ids))
    )
    assert [each.checkpoint["id"] for each in savers[0].list(named("busy"))] == sorted(
        (each["id"] for each in ids), reverse=True
    )


def test_what_casebank_cannot_keep_is_an_error_and_no_other_users_thread_is_seen(banked: Banked, nobody: Casebank):
    saver = CasebankSaver(banked.memory, AGENT)
    large = {**empty_checkpoint(), "channel_values": {"text": "word " * 1_000_000}}
    with pytest.raises(CasebankRefused):
        saver.put(named("large"), large, {}, {})  # type: ignore[arg-type]
    assert saver.get_tuple(named("large")) is None
    with pytest.raises(CasebankUnreachable):
        CasebankSaver(nobody, AGENT).get_tuple(named("large"))
    saver.put(named("mine"), empty_checkpoint(), {}, {})
    token = banked.service.bearer("somebody-else")["Authorization"].removeprefix("Bearer ")
    with Casebank(banked.service.url, token) as other:
        assert CasebankSaver(other, AGENT).get_tuple(named("mine")) is None
        CasebankSaver(other, AGENT).delete_thread("mine")
    assert saver.get_tuple(named("mine")) is not None
    with banked.service.client(banked.user) as client:
        client.put(f"/v1/profiles/{AGENT}", json={"enabled": False})
    with pytest.raises(CasebankRefused) as off:
        saver.put(named("mine"), empty_checkpoint(), {}, {})
    assert off.value.is_memory_off
