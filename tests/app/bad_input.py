"""What nobody should send, and the form of the answer to it."""

import json
from typing import Any
from uuid import uuid4

import httpx

from tests.service import AGENT, User

CANARY = "wibblewobble"
"""Stands in every bad value; an answer that repeats it could repeat a secret."""


def run(**more: Any) -> dict[str, Any]:
    return {"agent": AGENT, "task": "water the garden", "outcome": "success", **more}


def raw(body: Any) -> bytes:
    """The JSON with whatever Python would write into it: NaN, and surrogates as escapes."""
    return json.dumps(body).encode()


def is_problem(answer: httpx.Response) -> dict[str, Any]:
    """The problem document, which is of the form of RFC 9457 and repeats nothing of what was sent."""
    assert answer.headers["content-type"] == "application/problem+json"
    assert CANARY not in answer.text
    problem = answer.json()
    assert problem["type"].startswith("urn:casebank:problem:")
    assert problem["status"] == answer.status_code
    assert problem["title"]
    assert problem["detail"]
    return problem


async def send(user: User, path: str, content: Any, **headers: str) -> httpx.Response:
    return await user.http.post(path, content=content, headers={"Content-Type": "application/json", **headers})


async def queue_moves(user: User) -> None:
    case_id = await user.retain(f"water the garden {uuid4()}")
    await user.settle()
    assert (await user.case(case_id))["status"] == "ready"
