"""The user: settings of a profile with words that explain them, an export, and the erasure with its receipt."""

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import ValidationError

from app.console.page import COOKIE, ROOT, Fields, Form, Looking, Page, Visitor, go, show
from app.console.render import typed
from app.console.routes.sign_in import end
from app.console.words import SETTINGS, Setting
from app.erasure.command import make_issuer
from app.routes.bank import get_profile, list_audit, put_profile
from app.schemas.bank import ProfileOut, ProfilePatch
from writer.rights.erase import erase
from writer.rights.export import export

router = APIRouter(prefix=f"{ROOT}/user", route_class=Page, include_in_schema=False)

ALL_SETTINGS = [setting for group in SETTINGS.values() for setting in group]
NEWEST_CHANGES = 20


@router.get("")
async def user_page(request: Request, looking: Looking) -> Response:
    """Returns the settings of an agent's memory, and what a user may have done with all of it."""
    profile = None if looking.agent is None else await get_profile(looking.agent, looking.parts, looking.author)
    changes = await list_audit(looking.parts, looking.author, agent=looking.agent, limit=NEWEST_CHANGES)
    return show(request, "user.html", looking, profile=profile, groups=SETTINGS, changes=changes.entries)


@router.post("/settings")
async def change_settings(looking: Looking, form: Form) -> Response:
    """Changes what the form says otherwise than it is."""
    if looking.agent is None:
        raise HTTPException(404, "no such agent")
    before = await get_profile(looking.agent, looking.parts, looking.author)
    changed = _changed(before, form)
    if changed:
        await put_profile(looking.agent, _patch(changed), looking.parts, looking.author)
    return go(f"{ROOT}/user", agent=looking.agent)


@router.post("/export")
async def export_all(looking: Looking, _form: Form) -> Response:
    """Returns everything that is kept of the user, one JSON object a line, as a file."""
    name = f"casebank-{datetime.now(UTC):%Y-%m-%d}.jsonl"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(_lines(looking), media_type="application/jsonl; charset=utf-8", headers=headers)


@router.post("/erase")
async def erase_all(request: Request, looking: Looking, form: Form) -> Response:
    """Erases the user for good, once they typed their name, and returns the receipt."""
    if form.get("name") != looking.visit.user_sub:
        raise HTTPException(422, "nothing was erased: the name that was typed is not yours")
    issuer = await make_issuer(looking.parts.database, looking.parts.settings)
    receipt = await issuer.issue(await erase(looking.parts.database, looking.visit.user_sub))
    await end(request, looking.visit)
    answer = show(request, "receipt.html", receipt=receipt, document=json.dumps(receipt))
    answer.delete_cookie(COOKIE, path=ROOT)
    return answer


async def _lines(looking: Visitor) -> AsyncIterator[str]:
    async for row in export(looking.parts.database, looking.parts.keyring, looking.author.user_sub):
        yield json.dumps(row) + "\n"


def _changed(before: ProfileOut, form: Fields) -> dict[str, object]:
    """Returns the settings that the form has otherwise; what it does not name stays as it is, but for switches."""
    told = [each for each in ALL_SETTINGS if each.kind == "switch" or each.name in form]
    same = {each.name for each in told if form.get(each.name, "").strip() == typed(getattr(before, each.name))}
    wanted = {each.name: _value(each, form) for each in told if each.name not in same}
    return {name: value for name, value in wanted.items() if value != getattr(before, name)}


def _value(setting: Setting, form: Fields) -> object:
    text = form.get(setting.name, "").strip()
    if setting.kind == "switch":
        return text == "on"
    if setting.kind == "wish":
        return {"yes": True, "no": False}.get(text)
    if setting.kind == "tools":
        pairs = [line.rpartition(":") for line in text.splitlines() if line.strip()]
        return {name.strip(): kind.strip() for name, _, kind in pairs}
    if setting.kind == "choice":
        return text
    if not text and setting.may_be_empty:
        return None
    try:
        return int(text) if setting.kind == "whole" else float(text)
    except ValueError:
        raise HTTPException(422, f"nothing was changed: “{setting.label}” is a number") from None


def _patch(changed: dict[str, object]) -> ProfilePatch:
    try:
        return ProfilePatch.model_validate(changed)
    except ValidationError as error:
        names = {each.name: each.label for each in ALL_SETTINGS}
        wrong = "; ".join(f"“{names[str(fault['loc'][0])]}”: {fault['msg']}" for fault in error.errors())
        raise HTTPException(422, f"nothing was changed. {wrong}") from None
