"""Dependencies of every route: the running parts, the caller, and the caller's limits."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from ipaddress import IPv4Network, IPv6Network, ip_address
from typing import Annotated
from urllib.parse import urlsplit
from uuid import UUID

from fastapi import Depends, Header, Path, Query, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from app.admission.admission import Wanted
from app.admission.quotas import Standing, fields
from app.auth.errors import NotAllowed
from app.auth.tokens import OPERATOR, TokenVerifier
from app.edge.requests import of_user
from app.runtime import Runtime
from app.settings import Settings
from retrieval.errors import CasebankError
from writer.author import Author
from writer.moment import Moment
from writer.run import AgentKey

Networks = Sequence[IPv4Network | IPv6Network]
FORWARDED = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-real-ip", "via")
"""Headers that a proxy adds: the connection's address is then not the caller's."""

OUR_NAMES = (".internal", ".svc", ".cluster.local")
"""Ends of names that a foreign page cannot have: reserved for private networks, or a cluster's own."""

_IDENTITY = "casebank.identity"
ACTING_FOR = "X-Casebank-User"


async def runtime(request: Request) -> Runtime:
    """Returns the parts of the running process; a coroutine, because FastAPI runs a plain dependency in a thread."""
    parts: Runtime = request.app.state.runtime
    return parts


async def identify(request: Request) -> Author:
    """Returns the caller, by the headers alone; verified once for each request.

    Raises:
        NotAuthenticated, NotAllowed, UserNotNamed, KeysUnavailable: see TokenVerifier.identify.
    """
    known: Author | None = request.scope.get(_IDENTITY)
    if known is None:
        verifier: TokenVerifier = request.app.state.verifier
        headers = request.headers
        known = await verifier.identify(headers.get("authorization"), headers.get(ACTING_FOR))
        request.scope[_IDENTITY] = known
        of_user(known.user_sub)
    return known


async def operator(request: Request) -> None:
    """Returns if the caller may see the numbers of the installation: from this machine, or with the operator's scope.

    Raises:
        NotAuthenticated, NotAllowed, KeysUnavailable: see app.auth.errors.
    """
    networks: Networks = request.app.state.operator_networks
    if not is_direct_from(request, networks) or _may_be_rebound(request):
        verifier: TokenVerifier = request.app.state.verifier
        if not (await verifier.bearer(request.headers.get("authorization"))).is_operator:
            raise NotAllowed(f"the numbers of the installation need the scope {OPERATOR}")


async def is_operator(request: Request) -> bool:
    """Returns whether the caller may see the numbers of the installation."""
    try:
        await operator(request)
    except CasebankError:
        return False
    return True


def is_direct_from(request: Request, networks: Networks) -> bool:
    """Returns whether the request comes from one of the networks, and not through a proxy."""
    if any(name in request.headers for name in FORWARDED):
        return False
    try:
        address = ip_address(request.client.host if request.client else "")
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address  # as a socket for both versions names it
    return any(address in network for network in networks)


def _may_be_rebound(request: Request) -> bool:
    """Returns whether a foreign page in an operator's browser may have sent a request, by pointing its own name here.

    The name of such a page has a dot (DNS rebinding): `localhost`, the name of a container, an address in digits, a
    name with an end in ``OUR_NAMES``, and the name in CASEBANK_PUBLIC_URL are ours.
    """
    settings: Settings = request.app.state.settings
    try:
        host = urlsplit(f"//{request.headers.get('host', '')}").hostname or "."
    except ValueError:
        return True
    is_ours = host.replace(".", "").isdigit() or host.endswith(OUR_NAMES)
    return "." in host and not is_ours and host != urlsplit(settings.public_url or "").hostname


def refuse_wrong_parameters(request: Request) -> None:
    """Refuses unknown and repeated query parameters: a misspelt filter is not no filter, and two are not the last one.

    Raises:
        RequestValidationError: the error names each such parameter.
    """
    route = request.scope.get("route")
    if not request.query_params or not isinstance(route, APIRoute):
        return
    known = set(query_parameters(route.dependant))
    hint = f"unknown parameter; the route has {', '.join(sorted(known))}" if known else "this route has no parameters"
    given = Counter(name for name, _ in request.query_params.multi_items())
    wrong = {name: hint for name in given if name not in known}
    wrong |= {name: "given more than once" for name in known if given[name] > 1}
    if wrong:
        errors = [{"loc": ("query", name), "msg": message, "type": "extra"} for name, message in wrong.items()]
        raise RequestValidationError(errors)


def query_parameters(dependant: Dependant) -> Iterator[str]:
    """Yields the names of the query parameters of a route and of what it depends on."""
    yield from (each.alias for each in dependant.query_params)
    for each in dependant.dependencies:
        yield from query_parameters(each)


SESSION, MAX_SESSION_CHARS = "X-Casebank-Session", 128


@asynccontextmanager
async def let_in(request: Request, caller: Author) -> AsyncIterator[Sequence[Standing]]:
    """Lets a request in by its method, path, query and headers, and yields the rest of its limits.

    Raises:
        NotNow: the request is refused.
    """
    agent = request.path_params.get("agent") or request.query_params.get("agent")
    wanted = Wanted(request.method, request.url.path, request.headers.get(SESSION) or None, agent)
    async with (await runtime(request)).admission.admitted(caller, wanted) as standings:
        yield standings


async def admitted(
    request: Request,
    response: Response,
    _session: Annotated[
        str | None,
        Header(
            alias=SESSION,
            min_length=1,
            max_length=MAX_SESSION_CHARS,
            description="any name for a conversation or a run of an agent; it has limits of its own beside the user's",
        ),
    ] = None,
    _acting_for: Annotated[
        str | None, Header(alias=ACTING_FOR, description="user to act for; needs scope casebank:act-as")
    ] = None,
) -> AsyncIterator[Author]:
    """Yields the admitted caller, and adds the rest of the limits to the answer's header fields.

    One dependency, because FastAPI takes longer to solve each than all of them need.

    Raises:
        NotAuthenticated, NotAllowed, UserNotNamed, KeysUnavailable: see TokenVerifier.identify.
        RequestValidationError: there are unknown or repeated query parameters.
        NotNow: the request is refused.
    """
    caller = await identify(request)
    refuse_wrong_parameters(request)
    async with let_in(request, caller) as standings:
        response.headers.update(fields(standings))
        yield caller


# parameters that several routes have
Agent = Annotated[AgentKey, Query()]
AgentPath = Annotated[AgentKey, Path()]
AnyAgent = Annotated[AgentKey | None, Query()]
Limit = Annotated[int, Query(ge=1, le=200)]
Cursor = Annotated[UUID | None, Query(description="next_cursor of the previous page")]
Since = Annotated[Moment | None, Query(description="earliest time of a decision, inclusive")]
Until = Annotated[Moment | None, Query(description="latest time of a decision, exclusive")]

Operator = Annotated[None, Depends(operator)]
Parts = Annotated[Runtime, Depends(runtime)]
Caller = Annotated[Author, Depends(admitted, scope="function")]
