"""Sign-in with a token or a one-time link, sign-out, and the static files of the pages."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request, Response

from app.auth.errors import KeysUnavailable, NotAuthenticated
from app.auth.revocations import Revocation, revoke, use_up
from app.auth.tokens import TokenVerifier
from app.console.page import (
    COOKIE,
    HEADERS,
    ROOT,
    SIGN_IN,
    Form,
    Looking,
    Page,
    doors,
    go,
    is_ours,
    origin_of,
    sent,
    show,
    visit_of,
)
from app.console.render import STATIC, static, static_version
from app.console.visits import Link, Visit
from app.edge.dependencies import runtime

router = APIRouter(prefix=ROOT, route_class=Page, include_in_schema=False)

A_YEAR_S = 31_536_000


@router.get("/sign-in")
async def sign_in_page(
    request: Request, next_: Annotated[str, Query(alias="next", max_length=4_000)] = ROOT
) -> Response:
    """Returns the form that asks for a token."""
    if await visit_of(request) is not None:
        return go(_after(next_))
    return _sign_in(request, next_)


@router.post("/sign-in")
async def sign_in(request: Request) -> Response:
    """Starts a visit with a token, and redirects to the requested page."""
    fields = await sent(request)
    next_ = fields.get("next", ROOT)
    verifier: TokenVerifier = request.app.state.verifier
    try:
        bearer = await verifier.bearer(f"Bearer {fields.get('token', '').strip()}")
    except NotAuthenticated as error:
        return _sign_in(request, next_, wrong=str(error), status=401)
    except KeysUnavailable as error:
        return _sign_in(request, next_, wrong=str(error), status=503)
    if bearer.is_service:
        return _sign_in(
            request, next_, wrong="this token belongs to a service: sign in with a user's token", status=403
        )
    return _welcome(request, Visit.by_token(bearer, datetime.now(UTC)), _after(next_))


@router.get("/link")
async def link_page(request: Request, code: Annotated[str, Query(max_length=4_000)] = "") -> Response:
    """Returns the page with the button that signs in; a mere fetch of the link's address does not use it up."""
    link = doors(request).seal.open(Link, code)
    return show(request, "link.html", code=code, link=link, status=200 if link else 410)


@router.post("/link")
async def follow_link(request: Request) -> Response:
    """Starts a visit with an unused link."""
    fields = await sent(request)
    link = doors(request).seal.open(Link, fields.get("code"))
    is_unused = False
    if link is not None:
        parts = await runtime(request)
        await parts.rest.wake()
        async with parts.database.as_worker() as connection:
            is_unused = await use_up(connection, link.id, link.ends_at, "a link to the console was used")
    if link is None or not is_unused:
        return show(request, "link.html", code="", link=None, status=410)
    return _welcome(request, link.visit(), f"{ROOT}/installation" if link.is_operator else ROOT)


@router.post("/sign-out")
async def sign_out(request: Request, looking: Looking, _form: Form) -> Response:
    """Ends the visit on every replica, so that copies of its cookie are worthless."""
    await end(request, looking.visit)
    answer = go(SIGN_IN)
    answer.delete_cookie(COOKIE, path=ROOT)
    return answer


async def end(request: Request, visit: Visit) -> None:
    """Ends a visit, here at once and within two seconds on every replica."""
    revocation = Revocation("signed out of the console", visit.id, expires_at=visit.ends_at)
    async with (await runtime(request)).database.as_worker() as connection:
        await revoke(connection, revocation)
    verifier: TokenVerifier = request.app.state.verifier
    verifier.revocations.refuse(visit.id)


@router.get("/static/{name}")
async def static_file(name: str, v: str = "") -> Response:
    """Returns a static file; a browser may keep it under the digest of its content, and under no other version."""
    if name not in STATIC:
        raise HTTPException(404, "no such file")
    kept = {"Cache-Control": f"public, max-age={A_YEAR_S}, immutable"} if v == static_version(name) else {}
    return Response(static(name), media_type=STATIC[name], headers=HEADERS | kept)


def _sign_in(request: Request, next_: str, *, wrong: str | None = None, status: int = 200) -> Response:
    from_elsewhere = request.headers.get("sec-fetch-site") == "cross-site"  # browsers then omit the cookie
    return show(
        request, "sign_in.html", status=status, next_page=_after(next_), wrong=wrong, from_elsewhere=from_elsewhere
    )


def _after(next_: str) -> str:
    return next_ if is_ours(next_) else ROOT


def _welcome(request: Request, visit: Visit, path: str) -> Response:
    """Returns the redirect to the page, with the cookie of the visit."""
    answer = go(path)
    answer.set_cookie(
        COOKIE,
        doors(request).seal.seal(visit),
        expires=visit.ends_at,
        path=ROOT,
        secure=origin_of(request).startswith("https://"),
        httponly=True,
        samesite="strict",
    )
    return answer
