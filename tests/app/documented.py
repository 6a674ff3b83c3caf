"""Holds every error that a test meets against the OpenAPI document: an operation that answers another fails."""

import re
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any

import httpx
from fastapi import FastAPI

DOCUMENTS: list[dict[str, Any]] = []
ANYWHERE = (405, 500, 501)
"""Of a method that the path does not have, and of what must not happen: the document says ``default``."""


def errors_are_documented(app: FastAPI) -> Callable[[httpx.Response], Awaitable[None]]:
    """Returns the check of a response, for the event hooks of a client."""

    async def check(response: httpx.Response) -> None:
        if response.status_code < 400 or response.status_code in ANYWHERE:
            return
        operation = _operation(app, response.request)
        if "security" not in operation:
            return
        told = operation["responses"].get(str(response.status_code), {})
        await response.aread()
        if not response.headers["content-type"].startswith("application/problem+json"):
            assert told, f"{response.request.method} {response.url.path} answers {response.status_code}"
            return
        kind = response.json()["type"].rpartition(":")[2]
        if response.status_code != 429:  # the document says of every limit what it is
            where = f"{response.request.method} {response.url.path}"
            assert kind in told.get("description", "").split(", "), f"{where} answers {response.status_code} {kind}"

    return check


def _operation(app: FastAPI, request: httpx.Request) -> dict[str, Any]:
    paths = _paths(app)
    fitting = [path for path in paths if _pattern(path).fullmatch(request.url.path)]
    nearest = max(fitting, key=lambda path: (path.count("{") == 0, len(re.sub(r"\{.*?\}", "", path))), default=None)
    return paths[nearest].get(request.method.lower(), {}) if nearest else {}


def _paths(app: FastAPI) -> dict[str, Any]:
    """Returns the operations of the document, which is made for the first app: every app has the same routes."""
    if not DOCUMENTS:  # it takes a second
        DOCUMENTS.append(app.openapi()["paths"])
    return DOCUMENTS[0]


@cache
def _pattern(path: str) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{.*?\\\}", ".+", re.escape(path)))
