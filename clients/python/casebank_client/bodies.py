"""Builds the bodies of requests from the arguments of the client's methods."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from uuid_utils import uuid7

from casebank_client.answers import Outcome, RewardSource
from casebank_client.wire import Request, encoded, without_none

PAGE = 200
"""Most rows of one page of the service."""
MOST_TASK_CHARS = 20_000
MOST_BODY_BYTES = 4 * 1024 * 1024
"""Largest body that casebank takes, unless its operator set another size."""
LEAST_CHARS = 1_000
"""Characters that an input or an output of a tool keeps, whatever the size of the body."""
NO_TASK = "No task was given."


def retrieve(agent: str, query: str, options: Mapping[str, Any], *, recall: bool = False) -> Request:
    """Returns the request for a slate; ``options`` are further fields of ``POST /v1/retrieve``.

    An older service knows no ``recall``: it is asked for where it is wanted, and not named elsewhere.
    """
    wanted = {"recall": True} if recall else {}
    return Request("POST", "/v1/retrieve", without_none({"agent": agent, "query": query, **wanted, **options}))


def advice(agent: str, tool: str, given: Any, output: Any, options: Mapping[str, Any]) -> Request:
    """Returns the request for advice at a failed call; ``options`` are further fields of ``POST /v1/advice``."""
    call = {"agent": agent, "tool": tool, "input": given, "output": output}
    return Request("POST", "/v1/advice", without_none({**call, **options}))


def retain(run: Mapping[str, Any], idempotency_key: str | None = None) -> Request:
    """Returns the request that retains a finished run; sent again, it is the same run."""
    key = idempotency_key or str(uuid7())
    return Request("POST", "/v1/retain", without_none(run), {"Idempotency-Key": key})


def feedback(
    *,
    retrieval_id: str | None,
    case_id: str | None,
    reward: float | None,
    thumb: str | None,
    source: RewardSource | None,
) -> Request:
    """Returns the request that rewards a run, by its own id or by its retrieval's."""
    said = {"retrieval_id": retrieval_id, "case_id": case_id, "reward": reward, "thumb": thumb, "source": source}
    return Request("POST", "/v1/feedback", without_none(said))


def finished_run(  # noqa: PLR0913 - each is a field of the body
    agent: str,
    task: str,
    outcome: Outcome,
    *,
    tool_traces: Sequence[Mapping[str, Any]] = (),
    plan: Sequence[str] = (),
    more: Mapping[str, Any],
) -> dict[str, Any]:
    """Returns the body of a retain; ``more`` are further fields of ``POST /v1/retain``."""
    named = {"agent": agent, "task": task, "outcome": outcome}
    return {**named, "tool_traces": list(tool_traces), "plan": list(plan), **more}


def task_text(task: str) -> str:
    """Returns the task in as many characters as casebank takes; in the place of an empty one, that there is none."""
    return shortened(task, MOST_TASK_CHARS) if isinstance(task, str) and task.strip() else NO_TASK


def fitting(run: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the body of a retain, of whose tool outputs, and then inputs, the longest are shortened until it fits."""
    traces = [dict(trace) for trace in run["tool_traces"]]
    over = len(encoded(without_none(run))) - MOST_BODY_BYTES
    for part in ("output", "input"):
        if over <= 0:
            break
        texts = [as_text(trace.get(part)) for trace in traces]
        sizes = [len(encoded(trace.get(part))) for trace in traces]
        most = MOST_BODY_BYTES
        while most > LEAST_CHARS and over > 0:
            most //= 2
            for place in [place for place, text in enumerate(texts) if len(text) > most]:
                traces[place][part] = shortened(texts[place], most)
                over -= sizes[place]
                sizes[place] = len(encoded(traces[place][part]))
                over += sizes[place]
    return {**run, "tool_traces": traces}


def shortened(value: Any, most: int) -> Any:
    """Returns the value if its text has no more characters than that, or else the beginning and the end of the text."""
    text = as_text(value)
    if len(text) <= most:
        return value
    kept = most - 40  # the rest is for the words between
    end = kept // 4
    return f"{text[: kept - end]}\n… {len(text) - kept} characters left out\n{text[-end:]}"


def as_text(value: Any) -> str:
    """Returns a text as it is, and another value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def add_turns(agent: str, session_id: str, turns: Sequence[Mapping[str, Any]]) -> Request:
    """Returns the request that adds turns to a session; sent again, they are the same turns."""
    body = {"agent": agent, "turns": [dict(turn) for turn in turns]}
    return Request("POST", f"{_session(session_id)}/turns", body, {"Idempotency-Key": str(uuid7())})


def read_session(session_id: str, token_budget: int) -> Request:
    """Returns the request for the newest turns that fit the budget."""
    return Request("GET", f"{_session(session_id)}?token_budget={token_budget}", None)


def delete_session(session_id: str) -> Request:
    """Returns the request that deletes a session."""
    return Request("DELETE", _session(session_id), None)


def add_fact(agent: str, kind: str, text: str, more: Mapping[str, Any]) -> Request:
    """Returns the request that keeps a fact; sent again, the fact is the same, told once more."""
    if not isinstance(text, str):
        raise TypeError(
            "a fact is a text; messages go into add_turns(agent, session_id, messages), which reads facts itself"
        )
    refuse({"user_id"} & more.keys())
    return Request("POST", "/v1/facts", without_none({"agent": agent, "kind": kind, "text": text, **more}))


def refuse(names: Iterable[str]) -> None:
    """Raises TypeError where there are arguments of these names, such as the ``user_id`` of other memories."""
    for name in names:
        raise TypeError(f"no argument {name!r}: the user is the one of the token; use a client for each user")


def add_knowledge(agent: str, category: str, text: str, more: Mapping[str, Any]) -> Request:
    """Returns the request that keeps an entry of knowledge; sent again, it is the same entry."""
    entry = {"agent": agent, "category": category, "text": text, **more}
    return Request("POST", "/v1/knowledge", without_none(entry))


def recall(agent: str, query: str, kinds: Iterable[str] | None, options: Mapping[str, Any]) -> Request:
    """Returns the request that searches turns, facts and knowledge; ``options`` are further fields of the body."""
    chosen = None if kinds is None else list(kinds)
    return Request("POST", "/v1/recall", without_none({"agent": agent, "query": query, "kinds": chosen, **options}))


def page(rows: str, filters: Mapping[str, Any]) -> Request:
    """Returns the request for a page of facts, knowledge or cases."""
    said = {name: str(value).lower() if isinstance(value, bool) else value for name, value in filters.items()}
    return Request("GET", f"/v1/{rows}?{urlencode(without_none(said))}", None)


def one(rows: str, row_id: str) -> Request:
    """Returns the request for one row of facts, knowledge or cases."""
    return Request("GET", f"/v1/{rows}/{quote(row_id, safe='')}", None)


def delete(rows: str, row_id: str) -> Request:
    """Returns the request that deletes one row of facts, knowledge or cases."""
    return Request("DELETE", f"/v1/{rows}/{quote(row_id, safe='')}", None)


def _session(session_id: str) -> str:
    return f"/v1/sessions/{quote(session_id, safe='')}"
