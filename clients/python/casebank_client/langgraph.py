"""A store for LangGraph: items by namespace and key, kept as the user's knowledge and found by recall."""

import asyncio
import json
import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import unquote, urlencode

from langgraph.store.base import BaseStore, GetOp, Item, Op, PutOp, Result, SearchItem, SearchOp, validate_op_namespace
from langgraph.store.memory import InMemoryStore

from casebank_client.client import Casebank
from casebank_client.errors import CasebankRefused
from casebank_client.wire import Request

KIND = {"category": "langgraph", "type": "item"}
"""The fields of an item that casebank stores unencrypted besides the agent; equal for all items."""
PAGE = 200
MOST_RECALLED, RECALL_TOKENS = 100, 100_000

Path = tuple[tuple[str, ...], str]
"""A namespace, and a key in it."""


class CasebankStore(BaseStore):
    """A LangGraph store in casebank: one agent's, and the user's alone; sealed, exported and erased with the user.

    Answers as LangGraph's ``InMemoryStore`` does, but for these:

    * Secrets and personal data are taken out of values. What is no JSON object after that is not kept, and ``put``
      raises ``ValueError``, as for a namespace or a key that looks like a secret.
    * A value is JSON, of 8,192 characters at most; namespace and key have 200 between them, of which every character
      but ``a-z 0-9 _ . : @ -`` takes three or more. Otherwise ``put`` raises ``CasebankRefused``.
    * A search with a ``query`` has what recall finds first (100 items at most), by how much it stands out, with the
      cosine as ``score`` once the worker has embedded it; then the others. ``index`` has no say in it. Without a
      query the items come in the order in which they were made, and namespaces by their oldest item.
    * ``created_at`` stays when an item is put again. A namespace without an item is not listed.
    * There is no time to live. A search and a list of namespaces read all items of the agent.

    Every call raises ``CasebankUnreachable`` where casebank does not answer within the client's patience.

    Args:
        memory: the client; it is not closed.
        agent: agent of the items.
    """

    def __init__(self, memory: Casebank, agent: str) -> None:
        self._memory = memory
        self._agent = agent

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Returns what each operation comes to; reads see what was there before any write, of which the last wins."""
        ops = list(ops)
        for op in ops:
            validate_op_namespace(op)
        results = [None if isinstance(op, PutOp) else self._read(op) for op in ops]
        for op in {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}.values():
            self._write(op)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Runs ``batch`` in a thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _read(self, op: Op) -> Result:
        if isinstance(op, GetOp):
            entry = self._entry((op.namespace, op.key))
            return None if entry is None else _item(entry)
        items = {(item.namespace, item.key): item for item in map(_item, self._entries())}
        if isinstance(op, SearchOp):
            return self._found(op, items)
        (namespaces,) = _in_memory(items).batch([op])
        return namespaces

    def _found(self, op: SearchOp, items: dict[Path, Item]) -> list[SearchItem]:
        fitting = _in_memory(items).search(op.namespace_prefix, filter=op.filter, limit=len(items))
        paths = [(each.namespace, each.key) for each in fitting]
        scores = self._recalled(op.query) if op.query else {}
        recalled = [path for path in scores if path in paths]
        ordered = recalled + [path for path in paths if path not in scores]
        return [_scored(items[path], scores.get(path)) for path in ordered[op.offset : op.offset + op.limit]]

    def _recalled(self, query: str) -> dict[Path, float | None]:
        """Returns the items that the query is about, the best first, and how near each is."""
        asked = {"query": query, "kinds": ["knowledge"], "top_k": MOST_RECALLED, "token_budget": RECALL_TOKENS}
        answer = self._memory.ask(Request("POST", "/v1/recall", {"agent": self._agent, **asked}))
        mine = [each for each in answer["memories"] if each["source"]["category"] == KIND["category"]]
        return {_path(each["text"].partition("\n")[0]): each["similarity"] for each in mine}

    def _write(self, op: PutOp) -> None:
        path = op.namespace, op.key
        if op.value is None:
            if (entry := self._entry(path)) is not None:
                self._delete(entry)
            return
        said = {"title": _title(path), "text": json.dumps(op.value, ensure_ascii=False)}
        entry = self._memory.ask(Request("POST", "/v1/knowledge", {"agent": self._agent, **KIND, **said}))
        if entry["title"] != said["title"] or not _is_object(entry["text"]):
            self._delete(entry)
            raise ValueError("casebank took a part of this for a secret, and what is left is no item; it is not kept")

    def _entry(self, path: Path) -> dict[str, Any] | None:
        title = _title(path)
        entries = self._page({"title": title})["knowledge"]
        return next((entry for entry in entries if entry["title"] == title), None)

    def _entries(self) -> list[dict[str, Any]]:
        """Returns all items as casebank has them, the oldest first."""
        page = self._page({"limit": PAGE})
        found = page["knowledge"]
        while page["next_cursor"] is not None:
            page = self._page({"limit": PAGE, "cursor": page["next_cursor"]})
            found += page["knowledge"]
        return found[::-1]

    def _page(self, only: dict[str, Any]) -> dict[str, Any]:
        query = urlencode({"agent": self._agent, **KIND, **only})
        return cast("dict[str, Any]", self._memory.ask(Request("GET", f"/v1/knowledge?{query}", None)))

    def _delete(self, entry: dict[str, Any]) -> None:
        try:
            self._memory.ask(Request("DELETE", f"/v1/knowledge/{entry['knowledge_id']}", None))
        except CasebankRefused as error:
            if error.status != HTTPStatus.NOT_FOUND:  # somebody else did
                raise


def _title(path: Path) -> str:
    """Returns namespace and key as one line; no two are the same, whatever their case and white space."""
    namespace, key = path
    return "/".join(re.sub(r"[^a-z0-9_.:@-]", _escaped, part) for part in (*namespace, key))


def _escaped(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02x}" for byte in found[0].encode())


def _path(title: str) -> Path:
    *namespace, key = map(unquote, title.split("/"))
    return tuple(namespace), key


def _item(entry: dict[str, Any]) -> Item:
    namespace, key = _path(entry["title"])
    times = {name: entry[name] for name in ("created_at", "updated_at")}
    return Item(value=json.loads(entry["text"]), key=key, namespace=namespace, **times)


def _scored(item: Item, score: float | None) -> SearchItem:
    return SearchItem(item.namespace, item.key, item.value, item.created_at, item.updated_at, score)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _in_memory(items: dict[Path, Item]) -> InMemoryStore:
    """Returns LangGraph's own store of these items, whose filters, pages and conditions are those to be answered by."""
    store = InMemoryStore()
    store.batch([PutOp(item.namespace, item.key, item.value) for item in items.values()])
    return store
