"""The requests and how their answers are read, the same for both clients; when to ask again, and when to give up."""

import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from http import HTTPStatus
from typing import Any

import httpx
import stamina

from casebank_client.errors import CasebankRefused, CasebankUnreachable

COME_BACK = frozenset({408, 429, 502, 503, 504})
"""Statuses that say nothing against the request itself."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Longest waits and number of attempts of the client.

    Attributes:
        timeout_s: longest wait for one answer.
        attempts: maximum number of attempts, the first one included.
        total_s: longest time for all attempts; a wait that would pass it is not begun.
        first_wait_s: wait before the second attempt; doubles with each further one. A random part of it is added.
        most_wait_s: longest wait; a longer ``Retry-After`` is cut to it.
        begin_s: longest time of the retrieve with which a run begins, for all attempts and within ``total_s``; after it
            the agent acts without memory.
    """

    timeout_s: float = 10.0
    attempts: int = 4
    total_s: float = 30.0
    first_wait_s: float = 0.1
    most_wait_s: float = 5.0
    begin_s: float = 3.0

    def within(self, longest_s: float) -> "Patience":
        """Returns this patience, cut to a longest time for all attempts."""
        return replace(self, timeout_s=min(self.timeout_s, longest_s), total_s=min(self.total_s, longest_s))


def once(within_s: float) -> Patience:
    """Returns the patience of one attempt."""
    return Patience(timeout_s=within_s, attempts=1, total_s=within_s)


@dataclass(frozen=True, slots=True)
class Request:
    """One request, which may be sent any number of times to the same effect."""

    method: str
    path: str
    body: Mapping[str, Any] | None
    headers: Mapping[str, str] = field(default_factory=dict)

    def arguments(self) -> dict[str, Any]:
        """Returns the arguments of httpx's ``request``."""
        named = {"method": self.method, "url": self.path}
        if self.body is None:
            return {**named, "headers": dict(self.headers)}
        headers = {"Content-Type": "application/json", **self.headers}
        return {**named, "content": encoded(dict(self.body)), "headers": headers}


def encoded(value: Any) -> bytes:
    """Returns the value as JSON in UTF-8; U+FFFD stands for a lone surrogate, which is no Unicode.

    Raises:
        ValueError: a number is not finite.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]+")
"""Syntax of a bearer token (RFC 6750, section 2.1)."""
_USER = re.compile(r"(?! )[^\x00-\x1f\x7f-\x9f\ud800-\udfff]+(?<! )")
"""Names that arrive as they are in a header: HTTP strips the spaces around them, which leaves another user's name."""


def headers_of(token: str, user: str | None, session: str | None) -> dict[str, bytes]:
    """Returns what every request says of who asks, in UTF-8.

    The space around a token, a file's last newline say, is none of it. What can be no token is not sent: casebank says
    that there is none, where an error about the header would have it in its words.

    Raises:
        ValueError: no header carries the user's name.
    """
    if user is not None and not _USER.fullmatch(user):
        raise ValueError("user must be a name without spaces around it and without control characters")
    bearer = f"Bearer {token.strip()}" if _TOKEN.fullmatch(token.strip()) else "Bearer"
    said = {"Authorization": bearer, "X-Casebank-User": user, "X-Casebank-Session": session}
    return {name: value.encode() for name, value in said.items() if value is not None}


def owner_of(base_url: str, token: str, user: str | None) -> str:
    """Returns a digest of the service and the user whose memory a client writes, by which a file keeps users apart.

    The user is the one that a service names, or else the subject of the token, so that a renewed token is the same
    user's. The client cannot verify the subject; the backend must have. A token that is no JWT stands for itself.
    """
    name = user if user is not None else _subject(token)
    named = {"token": token.strip()} if name is None else {"user": name}
    return sha256(json.dumps([base_url.rstrip("/"), named]).encode()).hexdigest()


def _subject(token: str) -> str | None:
    """Returns the subject of a JWT; None: the token is none, or has no subject."""
    with suppress(Exception):
        payload = token.split(".")[1]
        subject = json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["sub"]
        return subject if isinstance(subject, str) else None
    return None


def address_of(base_url: str) -> str:
    """Returns the address of the service; raises ValueError if it is none of HTTP, which would be asked in vain."""
    if not base_url.startswith(("http://", "https://")):
        raise ValueError(f"base_url must begin with http:// or https://, and is {base_url!r}")
    return base_url


def without_none(body: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields that were given."""
    return {name: value for name, value in body.items() if value is not None}


class AskAgain(Exception):
    """The answer, or the lack of one, says nothing against the request."""

    def __init__(self, why: str, retry_after_s: float | None = None) -> None:
        super().__init__(why)
        self.retry_after_s = retry_after_s


def read(answer: httpx.Response, attempt: int) -> Any:
    """Returns the JSON of the answer to this attempt, from 1; None where it has no content.

    What a repeated DELETE does not find, the attempt before it deleted.

    Raises:
        AskAgain: casebank cannot now, or what answered was not casebank.
        CasebankRefused: it will not.
    """
    if answer.is_success:
        return _content(answer)
    if attempt > 1 and answer.request.method == "DELETE" and answer.status_code == HTTPStatus.NOT_FOUND:
        return None
    if answer.status_code in COME_BACK:
        raise AskAgain(f"{answer.status_code} {answer.reason_phrase}", _retry_after(answer))
    raise CasebankRefused(answer.status_code, _problem(answer))


def _content(answer: httpx.Response) -> Any:
    try:
        return answer.json() if answer.content else None
    except ValueError:
        raise AskAgain("the answer is no JSON") from None


def _retry_after(answer: httpx.Response) -> float | None:
    said = answer.headers.get("retry-after", "")
    return float(said) if said.isdecimal() else None


def _problem(answer: httpx.Response) -> dict[str, Any]:
    try:
        problem = answer.json()
    except ValueError:
        return {"title": answer.reason_phrase}
    return problem if isinstance(problem, dict) else {"title": answer.reason_phrase}


def attempts(patience: Patience) -> Any:
    """Returns the attempts to be made, for ``for`` or ``async for``: each is a context, and waits before the next.

    Not stamina's callers: those may log the arguments, which are a user's texts.
    """
    return stamina.retry_context(
        on=lambda error: _wait_s(error, patience),
        attempts=patience.attempts,
        timeout=patience.total_s,
        wait_initial=patience.first_wait_s,
        wait_max=patience.most_wait_s,
        wait_jitter=patience.first_wait_s,
    )


def _wait_s(error: Exception, patience: Patience) -> bool | float:
    """Returns whether to ask again, or after how many seconds where the service said so."""
    if isinstance(error, AskAgain) and error.retry_after_s is not None:
        return min(error.retry_after_s, patience.most_wait_s)
    return isinstance(error, AskAgain | httpx.TransportError)


def unreachable(error: Exception) -> CasebankUnreachable:
    """Returns the error to be raised when no attempt is left."""
    return CasebankUnreachable(f"casebank did not answer: {error or type(error).__name__}")


def late(patience: Patience) -> CasebankUnreachable:
    """Returns the error to be raised when the time for all attempts is over."""
    return CasebankUnreachable(f"casebank did not answer within {patience.total_s:g} s")


GIVEN_UP = (AskAgain, httpx.TransportError)
"""Errors that are turned into ``CasebankUnreachable`` after the last attempt."""
