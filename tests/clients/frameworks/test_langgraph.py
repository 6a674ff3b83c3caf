"""LangGraph, with their own in-memory store for comparison: the store."""

import asyncio
import random
from typing import Any
from uuid import UUID

import pytest

pytest.importorskip("langgraph", reason="langgraph is not installed: `make test-frameworks`")

from casebank_client import Casebank, CasebankRefused, CasebankUnreachable
from casebank_client.langgraph import CasebankStore
from langgraph.store.base import GetOp, InvalidNamespaceError, Item, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from tests.clients.frameworks.conftest import AGENT, Banked
from tests.processes import until

OPERATIONS = 200
NAMESPACES = [("users", "alice"), ("users", "Alice"), ("users", "bob", "notes"), ("docs",), ("docs", "x y/z%"), ("ä",)]
KEYS = ["a", "A", "b", "a b", "a  b", "", "%61", "ß", "ss", "…/b"]
FILTERS: list[dict[str, Any]] = [
    {"color": "red"},
    {"size": {"$gte": 4}},
    {"size": {"$lt": 3}, "color": "blue"},
    {"color": {"$ne": "red"}},
    {"tags": ["x", "y"]},
    {"nested": {"size": 2}},
    {"missing": None},
]
CONDITIONS = [
    MatchCondition("prefix", ("users",)),
    MatchCondition("suffix", ("notes",)),
    MatchCondition("prefix", ("*", "alice")),
]


def a_value(rng: random.Random) -> dict[str, Any]:
    size = rng.randrange(6)
    color = rng.choice(["red", "blue", "grün"])
    return {"color": color, "size": size, "tags": ["x", "y"][:size], "nested": {"size": size}, "half": size / 2}


def operation(rng: random.Random) -> Any:
    """One at random; a search with a place in its pages is of one namespace, for nothing says which comes first."""
    namespace, key = rng.choice(NAMESPACES), rng.choice(KEYS)
    only = rng.choice([None, *FILTERS])
    match rng.randrange(8):
        case 0 | 1 | 2:
            return PutOp(namespace, key, a_value(rng))
        case 3:
            return PutOp(namespace, key, None)
        case 4:
            return GetOp(namespace, key)
        case 5:
            deepest = rng.choice([("users", "alice"), ("users", "bob"), ("docs", "x y/z%"), ("nobody",)])
            return SearchOp(deepest, filter=only, limit=rng.randrange(1, 5), offset=rng.randrange(3))
        case 6:
            return SearchOp(namespace[: rng.randrange(2)], filter=only, limit=1_000)
        case _:
            conditions = rng.sample(CONDITIONS, rng.randrange(3))
            return ListNamespacesOp(tuple(conditions), rng.choice([None, 1, 2]), rng.randrange(1, 6), rng.randrange(2))


def without_empty_ones(store: InMemoryStore) -> InMemoryStore:
    """Theirs lists namespaces that were only asked for, and those whose items were deleted."""
    kept = store._data  # noqa: SLF001 - "do not change" says theirs, for others wrap it
    for namespace in [namespace for namespace, items in kept.items() if not items]:
        del kept[namespace]
    return store


def said(op: Any, result: Any) -> Any:
    """What a result says; when an item was made is each store's own, and so is the order of namespaces."""
    if isinstance(result, Item):
        return (result.namespace, result.key, result.value)
    if isinstance(op, SearchOp):
        items = [(each.namespace, each.key, each.value, each.score) for each in result]
        return sorted(items, key=str) if op.limit == 1_000 else items
    return result


def test_two_hundred_random_operations_are_answered_as_by_theirs(banked: Banked):
    rng = random.Random(7)
    ours, theirs = CasebankStore(banked.memory, AGENT), InMemoryStore()
    asked = answered = 0
    while asked < OPERATIONS:
        ops = [operation(rng) for _ in range(rng.choice([1, 1, 1, 4]))]
        wanted = [said(op, result) for op, result in zip(ops, without_empty_ones(theirs).batch(ops), strict=True)]
        found = [said(op, result) for op, result in zip(ops, ours.batch(ops), strict=True)]
        assert found == wanted, ops
        asked += len(ops)
        answered += len([each for each in wanted if each])
    assert answered > OPERATIONS / 5


async def test_asyncio_has_the_same_items(banked: Banked):
    store = CasebankStore(banked.memory, AGENT)
    await asyncio.gather(*(store.aput(("users",), f"{number}", {"number": number}) for number in range(5)))
    assert {item.value["number"] for item in await store.asearch(("users",))} == set(range(5))
    assert (await store.aget(("users",), "3")).value == {"number": 3}  # type: ignore[union-attr]
    await store.adelete(("users",), "3")
    assert await store.aget(("users",), "3") is None


def test_a_query_has_what_it_is_about_first_and_nothing_is_left_out(banked: Banked):
    store = CasebankStore(banked.memory, AGENT)
    store.put(("notes",), "tea", {"text": "green tea is brewed at eighty degrees"})
    store.put(("notes",), "bike", {"text": "the bicycle has a puncture"})
    store.put(("other",), "pump", {"text": "the bicycle pump is in the cellar"})
    found = store.search(("notes",), query="repair the bicycle")
    assert [item.key for item in found] == ["bike", "tea"]
    until(lambda: store.search(("notes",), query="repair the bicycle", limit=1)[0].score)
    assert store.search(("notes",), query="bicycle", filter={"text": "no such"}) == []
    with banked.service.client(banked.user) as client:
        client.post("/v1/knowledge", json={"agent": AGENT, "category": "bicycles", "text": "a bicycle has two wheels"})
    assert [item.key for item in store.search((), query="bicycle", limit=2, offset=1)][1:] == ["tea"]


def test_a_secret_is_taken_out_of_a_value_and_refused_in_a_key(banked: Banked):
    store = CasebankStore(banked.memory, AGENT)
    secret = "AKIAIOSFODNN7EXAMPLE"
    store.put(("keys",), "cloud", {"id": secret})
    kept = store.get(("keys",), "cloud")
    assert kept is not None
    assert secret not in str(kept.value)
    store.put(("keys",), "card", {"n": 4111111111111111})
    card = store.get(("keys",), "card")
    assert card is not None
    assert "4111" not in str(card.value)
    with pytest.raises(ValueError, match="a secret"):
        store.put(("keys",), "alice@example.org", {})
    assert store.get(("keys",), "alice@example.org") is None
    store.put(("keys",), str(UUID(int=7**40)), {"a": 1})
    assert len(store.search(("keys",))) == 3


def test_what_has_no_place_is_refused(banked: Banked, nobody: Casebank):
    store = CasebankStore(banked.memory, AGENT)
    for key, value in (("big", {"text": "word " * 2_000}), ("k" * 201, {})):
        with pytest.raises(CasebankRefused):
            store.put(("a",), key, value)
    with pytest.raises(NotImplementedError):
        store.put(("a",), "b", {}, ttl=5)
    with pytest.raises(InvalidNamespaceError):
        store.batch([GetOp(("a.b",), "c")])
    with pytest.raises(CasebankUnreachable):
        CasebankStore(nobody, AGENT).get(("a",), "b")
    assert store.search(()) == []


def test_more_items_than_a_page_are_all_found_the_oldest_first(banked: Banked):
    store = CasebankStore(banked.memory, AGENT)
    store.batch([PutOp(("many",), f"{number}", {"number": number}) for number in range(205)])
    assert [item.value["number"] for item in store.search(("many",), limit=300)] == list(range(205))
