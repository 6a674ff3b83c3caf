"""Readers of the settings whose text has a form of its own: addresses, networks, keys, older secrets."""

import re
from collections.abc import Callable
from datetime import datetime
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator

from app.auth.keys import MIN_SECRET_BYTES, OldSecret
from app.wrong_settings import WrongSettings

MASTER_KEY_DIGITS = 64
_ORIGIN = re.compile(r"https?://[^\sA-Z/?#@,]+")


class NoMasterKey(WrongSettings):
    """A master key that is missing or malformed; the message says how to make one."""


def is_http(url: str) -> bool:
    """Returns whether the text is an address that begins with http or https and names a host."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.netloc)


def is_strong(secret: str) -> bool:
    """Returns whether the secret is long enough to sign tokens."""
    return len(secret.encode()) >= MIN_SECRET_BYTES


def networks(text: str) -> list[IPv4Network | IPv6Network]:
    """Returns the networks of CASEBANK_OPERATOR_FROM.

    Raises:
        ValueError: a part of the text is no network.
    """
    try:
        return [ip_network(part) for part in text.split()]
    except ValueError:
        raise ValueError("networks like 10.0.0.0/8 with spaces between them") from None


def is_origin(text: str) -> bool:
    """Returns whether a browser may send the text as the origin of a page: it leaves out a slash and the usual port."""
    usual_port = ":443" if text.startswith("https:") else ":80"
    return is_http(text) and _ORIGIN.fullmatch(text) is not None and not text.endswith(usual_port)


def origins(text: str) -> list[str] | None:
    """Returns the origins of CASEBANK_CONSOLE besides the machine's own; None: the console is off.

    Raises:
        ValueError: a part of the text is no origin.
    """
    if text == "off":
        return None
    named = [part for part in text.split() if part != "loopback"]
    if not all(map(is_origin, named)):
        raise ValueError("loopback, off, or addresses like https://memory.example.org")
    return named


def callers(text: str) -> list[str]:
    """Returns the origins of CASEBANK_MCP_ORIGINS.

    Raises:
        ValueError: a part of the text is no origin.
    """
    if not all(map(is_origin, text.split())):
        raise ValueError("addresses like https://chat.example.org with spaces between them")
    return text.split()


def _readable_by(read: Callable[[str], object]) -> AfterValidator:
    """Returns a validator that keeps a text as it is, and refuses one that ``read`` refuses."""

    def check(text: str) -> str:
        read(text)
        return text

    return AfterValidator(check)


def _http_address(url: str) -> str:
    if not is_http(url):
        raise ValueError("must be an address that begins with http:// or https://")
    return url


HttpAddress = Annotated[str, AfterValidator(_http_address)]
"""An address that begins with http or https."""
Networks = Annotated[str, _readable_by(networks)]
"""Text of CASEBANK_OPERATOR_FROM, which ``networks`` reads."""
Origins = Annotated[str, _readable_by(origins)]
"""Text of CASEBANK_CONSOLE, which ``origins`` reads."""
Callers = Annotated[str, _readable_by(callers)]
"""Text of CASEBANK_MCP_ORIGINS, which ``callers`` reads."""


def key_bytes(text: str, variable: str) -> bytes:
    """Returns the 32 bytes of a master key.

    Raises:
        NoMasterKey: the text is not 64 hex digits; the message names the variable.
    """
    if len(text) != MASTER_KEY_DIGITS or set(text.lower()) - set("0123456789abcdef"):
        raise NoMasterKey(f"{variable} must be 64 hex digits (openssl rand -hex 32 makes them)")
    return bytes.fromhex(text)


def old_secrets(text: str) -> tuple[OldSecret, ...]:
    """Returns the secrets of CASEBANK_JWT_SECRETS_OLD.

    Raises:
        ValueError: a secret is too short, or its end is missing or has no zone.
    """
    secrets = []
    for part in text.split():
        secret, _, until = part.rpartition("@")
        try:
            secrets.append(OldSecret(secret=secret, until=datetime.fromisoformat(until)))
        except ValueError:
            raise ValueError("each is secret@until, until like 2026-12-31T00:00:00Z") from None
        if not is_strong(secret):
            raise ValueError(f"each secret needs {MIN_SECRET_BYTES} bytes at least")
    return tuple(secrets)
