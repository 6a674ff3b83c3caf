"""Addresses at which the console answers: the local machine, and the configured origins.

A foreign page can point its host name at this machine (DNS rebinding). So the Host header must be one of our names, and
a form must come from a page of the same origin.
"""

from collections.abc import Collection
from ipaddress import IPv4Network, IPv6Network, ip_network

from fastapi import HTTPException, Request

from app.edge.dependencies import is_direct_from

LOOPBACK: list[IPv4Network | IPv6Network] = [ip_network("127.0.0.0/8"), ip_network("::1/128")]
NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
"""Host names of the local machine."""


def origin_of(request: Request, origins: Collection[str] | None) -> str:
    """Returns the origin at which the browser reached the console: scheme, name and port.

    ``origins`` are allowed besides the local machine; None: the console is off.

    Raises:
        HTTPException: 404, the console does not answer at this address.
    """
    host = request.headers.get("host", "").lower()
    if origins is not None:
        for origin in origins:
            if host == origin.partition("://")[2]:
                return origin
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if name in NAMES and is_direct_from(request, LOOPBACK):
            return f"{request.url.scheme}://{host}"
    raise HTTPException(404, "the console does not answer at this address; CASEBANK_CONSOLE lists its addresses")
