"""Where the console may be reached: from this machine by a name of its own, and at the addresses that are set.

A page of somebody else's may give its own name the address of this machine (DNS rebinding): so the name that the
browser asked for must be one of ours, and what a form sends must come from a page of that very origin.
"""

from collections.abc import Collection
from ipaddress import IPv4Network, IPv6Network, ip_network

from fastapi import HTTPException, Request

from app.edge.dependencies import is_direct_from

LOOPBACK: list[IPv4Network | IPv6Network] = [ip_network("127.0.0.0/8"), ip_network("::1/128")]
NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
"""What a browser calls the machine that it runs on."""


def origin_of(request: Request, origins: Collection[str] | None) -> str:
    """Returns the origin at which the browser reached the console: scheme, name and port.

    Args:
        request: of the browser.
        origins: further ones besides the machine's own; None: the console is off.

    Raises:
        HTTPException: 404, the console does not answer there.
    """
    host = request.headers.get("host", "").lower()
    if origins is not None:
        for origin in origins:
            if host == origin.partition("://")[2]:
                return origin
        if _name(host) in NAMES and is_direct_from(request, LOOPBACK):
            return f"{request.url.scheme}://{host}"
    raise HTTPException(404, "the console does not answer here: CASEBANK_CONSOLE names where people may open it")


def is_from(request: Request, origin: str) -> bool:
    """Returns whether a page of that origin sent the request; browsers say so with everything that a form sends."""
    return request.headers.get("origin", "").lower() == origin


def _name(host: str) -> str:
    return host if host.endswith("]") else host.rpartition(":")[0] or host
