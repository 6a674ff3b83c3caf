"""Basis of the console's pages: access, forms, error pages, and the headers that keep scripts from running.

A foreign page can point its host name at this machine (DNS rebinding). So the Host header must be one of our names, and
a form must come from a page of the same origin.
"""

import hmac
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Annotated, Any
from urllib.parse import parse_qsl, quote, urlsplit

from fastapi import Depends, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException as AnyHTTPException

from app.auth.tokens import TokenVerifier
from app.console.render import rendered
from app.console.visits import Visit, VisitSeal, is_over
from app.edge import problems
from app.edge.dependencies import is_direct_from, let_in, runtime
from app.edge.intake.body import announced, read_body
from app.edge.requests import of_user
from app.runtime import Runtime
from app.settings import Settings
from retrieval.errors import CasebankError, UserErased
from retrieval.pages import listing
from writer.author import Author
from writer.run import AgentKey

ROOT = "/console"
SIGN_IN = f"{ROOT}/sign-in"
COOKIE = "casebank_console"
PER_PAGE = 25
"""Number of rows on a page of a list."""
MAX_FORM_BYTES = 64 * 1024
LOOPBACK = [ip_network("127.0.0.0/8"), ip_network("::1/128")]
NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
"""Host names of the local machine."""
MOST_FIELDS = 200

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self';"
    " base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
"""Headers of every response; pages have no scripts, so no script may run."""


@dataclass(frozen=True, slots=True)
class Doors:
    """The state of the console in this process.

    Attributes:
        origins: addresses at which the console answers besides this machine's own; None: the console is off.
        exporting: users whose export is under way.
    """

    settings: Settings
    origins: Sequence[str] | None
    exporting: set[str] = field(default_factory=set)

    @property
    def seal(self) -> VisitSeal:
        """The seal that encrypts cookies, and opens unchanged ones."""
        return VisitSeal(self.settings)


def doors(request: Request) -> Doors:
    """Returns the state of the console in this process."""
    kept: Doors = request.app.state.console
    return kept


def origin_of(request: Request) -> str:
    """Returns the origin at which the browser reached the console: scheme, name and port.

    Raises:
        HTTPException: 404, the console does not answer at this address.
    """
    host, origins = request.headers.get("host", "").lower(), doors(request).origins
    if origins is not None:
        for origin in origins:
            if host == origin.partition("://")[2]:
                return origin
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if name in NAMES and is_direct_from(request, LOOPBACK):
            return f"{request.url.scheme}://{host}"
    raise HTTPException(404, "the console does not answer at this address; CASEBANK_CONSOLE lists its addresses")


class SignInNeeded(HTTPException):
    """Raised for a visitor who is not signed in: redirects to the sign-in page, and then back; a form is lost."""

    def __init__(self, request: Request) -> None:
        if request.method == "GET":
            page = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        else:
            before = urlsplit(request.headers.get("referer", ""))
            path = before.path + (f"?{before.query}" if before.query else "")
            page = path if is_ours(path) else ROOT
        super().__init__(303, headers={"Location": f"{SIGN_IN}?next={quote(page, safe='/')}"})


class FormRefused(HTTPException):
    """Raised for a form that does not come from a page of this visit, the time between sign-in and sign-out."""

    def __init__(self) -> None:
        super().__init__(403, "this form is not from a page of this visit: go back, reload the page, and try again")


class Page(APIRoute):
    """A route that answers with a page, also after an error."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Returns the route's handler, with a check of the address before it, and error pages and headers after it."""
        handle = super().get_route_handler()

        async def answered(request: Request) -> Response:
            # raises at other addresses, where no page may say that there is a console
            origin_of(request)
            try:
                response = await handle(request)
            except (CasebankError, AnyHTTPException, RequestValidationError) as error:
                response = _refused(request, error)
            for name, value in HEADERS.items():
                response.headers.setdefault(name, value)
            return response

        return answered


@dataclass(frozen=True, slots=True)
class Visitor:
    """A signed-in visitor, with the runtime and the selected agent.

    Attributes:
        agent: agent in the address, or else the one used last; None: the user has no agent yet.
    """

    visit: Visit
    author: Author
    parts: Runtime
    agents: Sequence[str]
    agent: str | None


async def visit_of(request: Request) -> Visit | None:
    """Returns the visit in the cookie; None: no visit, or one that has ended.

    Raises:
        DatabaseUnavailable, KeysUnavailable: it cannot be checked whether the visit has ended.
    """
    visit = doors(request).seal.open(Visit, request.cookies.get(COOKIE))
    if visit is None:
        return None
    verifier: TokenVerifier = request.app.state.verifier
    return None if await is_over(visit, verifier) else visit


async def visitor(
    request: Request,
    agent: Annotated[AgentKey | None, Query(description="agent of the user")] = None,
) -> AsyncIterator[Visitor]:
    """Yields the signed-in visitor, under the limits of an API request of the same user.

    Raises:
        SignInNeeded: the visitor is not signed in.
        NotNow: a limit is reached.
        UserErased: the user was erased.
    """
    visit = await visit_of(request)
    if visit is None:
        raise SignInNeeded(request)
    of_user(visit.user_sub)
    author = Author(visit.user_sub, visit.user_sub, visit.authorised_at)
    parts = await runtime(request)
    async with let_in(request, author):
        async with parts.database.as_user(author.user_sub, author.authorised_at) as connection:
            agents = list((await connection.execute(listing.agents_of(author.user_sub))).scalars())
            if agent is None:
                agent = await connection.scalar(listing.agent_used_last(author.user_sub)) or next(iter(agents), None)
        if agent is not None and agent not in agents:
            raise HTTPException(404, "no such agent")
        yield Visitor(visit, author, parts, agents, agent)


Looking = Annotated[Visitor, Depends(visitor, scope="function")]


Fields = dict[str, str]
"""Fields of a posted form, by name; of several fields with one name, the last counts."""


async def sent(request: Request) -> Fields:
    """Returns the fields of a posted form, after a check that a page of this origin sent it.

    Raises:
        FormRefused: the form comes from another origin.
        BodyTooLarge: the body is too large.
        BodyIncomplete: the body ended early.
    """
    origin = origin_of(request)
    if request.headers.get("origin", "").lower() != origin:  # which browsers add to forms
        raise FormRefused
    body = await read_body(request.receive, announced(request.headers.get("content-length"), MAX_FORM_BYTES))
    try:
        fields = Fields(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError:
        raise HTTPException(422, "the body is not a form") from None
    if any("\0" in value for value in fields.values()):  # the database has no such text
        raise HTTPException(422, "a field of the form has a NUL character")
    return fields


async def form(request: Request, looking: Looking) -> Fields:
    """Returns the fields of a posted form, after a check that its form token is the visit's.

    Raises:
        FormRefused: the form does not belong to this visit.
    """
    fields = await sent(request)
    if not hmac.compare_digest(fields.get("form_token", "").encode(), looking.visit.form_token.encode()):
        raise FormRefused
    return fields


Form = Annotated[Fields, Depends(form, scope="function")]


def show(request: Request, template: str, looking: Visitor | None = None, status: int = 200, **more: Any) -> Response:
    """Returns the response with the page of a template; ``more`` are the template's values."""
    return HTMLResponse(rendered(template, at=request.url.path, looking=looking, **more), status)


def go(path: str, **parameters: object) -> Response:
    """Returns the redirect from a form to a page."""
    given = "&".join(f"{name}={quote(str(value), safe='')}" for name, value in parameters.items() if value is not None)
    return RedirectResponse(f"{path}?{given}" if given else path, 303)


def back(form: Fields, path: str, looking: Visitor) -> Response:
    """Returns the redirect to the page that the form was on; if the form names none, to ``path`` with the agent."""
    before = form.get("back", "")
    return RedirectResponse(before, 303) if is_ours(before) else go(path, agent=looking.agent)


def is_ours(path: str) -> bool:
    """Returns whether a path belongs to the console, so that a redirect to it is safe."""
    parts = urlsplit(path)
    plain = not parts.scheme and not parts.netloc and path.isprintable() and "\\" not in path
    return plain and (parts.path == ROOT or parts.path.startswith(f"{ROOT}/"))


def _refused(request: Request, error: CasebankError | AnyHTTPException | RequestValidationError) -> Response:
    """Returns the error page, or the redirect to the sign-in page."""
    if isinstance(error, SignInNeeded):
        return Response(status_code=303, headers=error.headers)
    if isinstance(error, CasebankError):
        status, message = int(problems.kind_of(type(error)).status), str(error)
    elif isinstance(error, AnyHTTPException):
        status, message = error.status_code, error.detail
    else:
        status, message = 422, "a parameter in the address of this page is invalid"
    headers = error.headers if isinstance(error, AnyHTTPException) else None
    page = HTMLResponse(rendered("problem.html", at=request.url.path, status=status, message=message), status, headers)
    if isinstance(error, UserErased):
        page.delete_cookie(COOKIE, path=ROOT)
    return page
