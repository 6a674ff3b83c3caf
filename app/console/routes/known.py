"""Shows what is known of the user over all agents: search, deletion, export, and the erasure with its receipt."""

import json
from asyncio import gather, to_thread
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Annotated, Literal, get_args
from uuid import UUID

from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from fastapi.responses import StreamingResponse

from app.admission.errors import TooManyAtOnce
from app.admission.turns import AT_ONCE
from app.console.known import Kind, known
from app.console.page import COOKIE, PER_PAGE, ROOT, Form, Looking, Page, Visitor, doors, form, show, visitor
from app.console.routes.sign_in import end
from app.erasure.command import make_issuer
from writer.rights.erase import erase
from writer.rights.export import export

router = APIRouter(prefix=f"{ROOT}/known", route_class=Page, include_in_schema=False)

KINDS: tuple[Kind, ...] = get_args(Kind)
PER_KIND = 5
"""Number of memories of each kind on the page of all kinds."""
RETRY_S = 10.0
"""Seconds after which a refused export may be tried again."""


@router.get("")
async def known_page(
    request: Request,
    looking: Looking,
    q: Annotated[str, Query(max_length=200)] = "",
    kind: Kind | Literal[""] = "",
    cursor: Annotated[UUID | None, Query()] = None,
) -> Response:
    """Returns the newest memories of each kind, or a page of one kind: all of them, or those that a search finds."""
    kinds = [kind] if kind else KINDS
    parts = [known(looking, each, q, cursor if kind else None, PER_PAGE if kind else PER_KIND) for each in kinds]
    found = dict(zip(kinds, await gather(*parts), strict=True))
    return show(request, "known.html", looking, q=q.strip(), kind=kind, cursor=cursor, found=found)


async def exporter(
    request: Request, looking: Annotated[Visitor, Depends(visitor, scope="request")]
) -> AsyncIterator[Visitor]:
    """Yields the signed-in visitor, whose turn lasts until the whole answer is sent.

    Raises:
        FormRefused: the form does not belong to this visit.
        TooManyAtOnce: another export of the user is under way in this process.
    """
    await form(request, looking)
    user_sub, exporting = looking.author.user_sub, doors(request).exporting
    if user_sub in exporting:
        raise TooManyAtOnce("another export of yours is under way: try again once it has ended", RETRY_S, AT_ONCE)
    exporting.add(user_sub)
    try:
        yield looking
    finally:
        exporting.discard(user_sub)


@router.post("/export")
async def export_all(looking: Annotated[Visitor, Depends(exporter, scope="request")]) -> Response:
    """Returns all data of the user as a file, one JSON object per line."""

    async def lines() -> AsyncIterator[str]:
        async for row in export(looking.parts.database, looking.parts.keyring, looking.author.user_sub):
            yield await to_thread(json.dumps, row) + "\n"

    name = f"casebank-{datetime.now(UTC):%Y-%m-%d}.jsonl"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(lines(), media_type="application/jsonl; charset=utf-8", headers=headers)


@router.post("/erase")
async def erase_all(request: Request, looking: Looking, fields: Form) -> Response:
    """Erases the user permanently, if the typed name is theirs, and returns the receipt."""
    if fields.get("name") != looking.visit.user_sub:
        raise HTTPException(422, "nothing was erased: the typed name is not yours")
    issuer = await make_issuer(looking.parts.database, looking.parts.settings)
    receipt = await issuer.issue(await erase(looking.parts.database, looking.visit.user_sub))
    await end(request, looking.visit)
    answer = show(request, "receipt.html", receipt=receipt, document=json.dumps(receipt))
    answer.delete_cookie(COOKIE, path=ROOT)
    return answer
