"""A page: who may see it, what a form on it sends, and the headers under which a browser runs nothing but our own."""

import hmac
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any
from urllib.parse import parse_qsl, quote, urlsplit

from fastapi import Depends, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException as AnyHTTPException

from app.auth.tokens import TokenVerifier
from app.console.address import is_from, origin_of
from app.console.attempts import Attempts
from app.console.render import rendered
from app.console.visits import Visit, VisitSeal, is_over
from app.edge import problems
from app.edge.dependencies import let_in, runtime
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
MAX_FORM_BYTES = 64 * 1024
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
"""Of every answer; there is no script, so none may run."""


@dataclass(frozen=True, slots=True)
class Doors:
    """What the console keeps in the process: where it may be reached, and who tried to sign in."""

    settings: Settings
    origins: Sequence[str] | None
    attempts: Attempts = field(default_factory=Attempts)

    @property
    def seal(self) -> VisitSeal:
        """What opens the cookies."""
        return VisitSeal.of(self.settings)


def doors(request: Request) -> Doors:
    """Returns the console's part of the running process."""
    kept: Doors = request.app.state.console
    return kept


class SignInNeeded(HTTPException):
    """Whoever asks is not signed in, or no longer: they are sent to do so, and then back."""

    def __init__(self, request: Request) -> None:
        super().__init__(303, headers={"Location": f"{SIGN_IN}?next={quote(_asked_for(request), safe='/')}"})


class FormRefused(HTTPException):
    """A form that no page of this visit has sent."""

    def __init__(self) -> None:
        super().__init__(403, "this form is not from a page of this visit: go back, load the page again, and repeat")


class Page(APIRoute):
    """A route that answers with a page, also where something is wrong."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Returns what answers a request: the route's own handler, behind the check of where it came in."""
        handle = super().get_route_handler()

        async def answered(request: Request) -> Response:
            origin_of(request, doors(request).origins)  # elsewhere there is no console, and no page that says so
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
    """Who looks at a page, with the parts that answer them, and which of their agents the page is about.

    Attributes:
        agent: the one that is asked for, or else the first one; None: they have none yet.
    """

    visit: Visit
    author: Author
    parts: Runtime
    agents: Sequence[str]
    agent: str | None


async def visit_of(request: Request) -> Visit | None:
    """Returns the visit that the cookie carries; None where there is none, or it is over.

    Raises:
        DatabaseUnavailable: nobody can say whether it is over.
    """
    visit = doors(request).seal.open(Visit, request.cookies.get(COOKIE))
    verifier: TokenVerifier = request.app.state.verifier
    return None if visit is None or is_over(visit, verifier.revocations) else visit


async def visitor(
    request: Request,
    agent: Annotated[AgentKey | None, Query(description="which of the user's agents")] = None,
) -> AsyncIterator[Visitor]:
    """Yields who is signed in, let in as a request of theirs to the API would be.

    Raises:
        SignInNeeded: nobody is.
        NotNow: they are not let in.
        UserErased: the user was erased since.
    """
    visit = await visit_of(request)
    if visit is None:
        raise SignInNeeded(request)
    of_user(visit.user_sub)
    author = Author(visit.user_sub, visit.user_sub, visit.authorised_at)
    parts = runtime(request)
    async with let_in(request, author):
        async with parts.database.as_user(author.user_sub, author.authorised_at) as connection:
            agents = list((await connection.execute(listing.agents_of(author.user_sub))).scalars())
        if agent is not None and agent not in agents:
            raise HTTPException(404, "no such agent")
        yield Visitor(visit, author, parts, agents, agent or next(iter(agents), None))


Looking = Annotated[Visitor, Depends(visitor, scope="function")]


async def operating(looking: Looking) -> Visitor:
    """Returns who is signed in, if they may see the numbers of the installation.

    Raises:
        HTTPException: 404, for whom there is no such page.
    """
    if not looking.visit.is_operator:
        raise HTTPException(404, "no such page")
    return looking


Operating = Annotated[Visitor, Depends(operating, scope="function")]


class Fields(dict[str, str]):
    """What a form sent, by name; of several under one name the last."""

    @property
    def named(self) -> Mapping[str, str]:
        """The fields without the token that shows where the form is from."""
        return {name: value for name, value in self.items() if name != "form_token"}


async def sent(request: Request) -> Fields:
    """Returns what a form of a page of this origin sent.

    Raises:
        FormRefused: it is from elsewhere.
        BodyTooLarge, BodyIncomplete: it was not read, or not to its end.
    """
    if not is_from(request, origin_of(request, doors(request).origins)):
        raise FormRefused
    body = await read_body(request.receive, announced(request.headers.get("content-length"), MAX_FORM_BYTES))
    try:
        return Fields(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError:
        raise HTTPException(422, "this is not what a form sends") from None


async def form(request: Request, looking: Looking) -> Fields:
    """Returns what a form of this visit sent.

    Raises:
        FormRefused: it is not of this visit.
    """
    fields = await sent(request)
    if not hmac.compare_digest(fields.get("form_token", "").encode(), looking.visit.form_token.encode()):
        raise FormRefused
    return fields


Form = Annotated[Fields, Depends(form, scope="function")]


def show(request: Request, template: str, looking: Visitor | None = None, status: int = 200, **more: Any) -> Response:
    """Returns the page that a template makes."""
    return HTMLResponse(rendered(template, at=request.url.path, looking=looking, **more), status)


def go(path: str, **parameters: object) -> Response:
    """Returns the answer that sends a browser from a form to a page."""
    given = "&".join(f"{name}={quote(str(value), safe='')}" for name, value in parameters.items() if value is not None)
    return RedirectResponse(f"{path}?{given}" if given else path, 303)


def is_ours(path: str) -> bool:
    """Returns whether a path is one of the console's, so that a browser may be sent there."""
    parts = urlsplit(path)
    plain = not parts.scheme and not parts.netloc and path.isprintable() and "\\" not in path
    return plain and (parts.path == ROOT or parts.path.startswith(f"{ROOT}/"))


def _asked_for(request: Request) -> str:
    """Returns the page that was asked for, or on which a form was filled in."""
    if request.method == "GET":
        return request.url.path + (f"?{request.url.query}" if request.url.query else "")
    before = urlsplit(request.headers.get("referer", ""))
    path = before.path + (f"?{before.query}" if before.query else "")
    return path if is_ours(path) else ROOT


def _refused(request: Request, error: CasebankError | AnyHTTPException | RequestValidationError) -> Response:
    """Returns the page that says what is wrong; who must sign in first is sent to do so."""
    if isinstance(error, SignInNeeded):
        return Response(status_code=303, headers=error.headers)
    if isinstance(error, CasebankError):
        status, said = int(problems.kind_of(error).status), str(error)
    elif isinstance(error, AnyHTTPException):
        status, said = error.status_code, error.detail
    else:
        status, said = 422, "something in the address is not what this page takes"
    headers = error.headers if isinstance(error, AnyHTTPException) else None
    page = HTMLResponse(rendered("problem.html", at=request.url.path, status=status, said=said), status, headers)
    if isinstance(error, UserErased):
        page.delete_cookie(COOKIE, path=ROOT)
    return page
