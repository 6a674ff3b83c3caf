"""Page of the user: settings of a profile, and recent changes."""

import json
from typing import Any

from fastapi import APIRouter, HTTPException, Request, Response
from pydantic import ValidationError

from app.console.page import ROOT, Fields, Form, Looking, Page, Visitor, go, show
from app.console.render import typed
from app.console.words import SETTINGS, Setting
from app.routes.bank import get_profile, list_audit, put_profile
from app.schemas.bank import ProfilePatch

router = APIRouter(prefix=f"{ROOT}/user", route_class=Page, include_in_schema=False)

ALL_SETTINGS = [setting for group in SETTINGS.values() for setting in group]
NEWEST_CHANGES = 20


@router.get("")
async def user_page(request: Request, looking: Looking) -> Response:
    """Returns the page with the settings of a profile and recent changes."""
    values = {} if looking.agent is None else await _values(looking, looking.agent)
    changes = await list_audit(looking.parts, looking.author, agent=looking.agent, limit=NEWEST_CHANGES)
    return show(request, "user.html", looking, values=values, groups=SETTINGS, changes=changes.entries)


@router.post("/settings")
async def change_settings(looking: Looking, form: Form) -> Response:
    """Changes the settings that differ from the form; a switch that the form leaves out is off."""
    if looking.agent is None:
        raise HTTPException(404, "no such agent")
    values = await _values(looking, looking.agent)
    named = [each for each in ALL_SETTINGS if each.kind == "switch" or each.name in form]
    edited = [each for each in named if form.get(each.name, "").strip() != typed(values[each.name])]
    wanted = {each.name: _value(each, form) for each in edited}
    changed = {name: value for name, value in wanted.items() if value != values[name]}
    if "enabled" in changed:
        changed["writing"] = wanted.get("writing", values["writing"])  # else the API would set both to the same
    if not changed:
        return go(f"{ROOT}/user", agent=looking.agent)
    shares = {name.removesuffix("_share"): changed.pop(name) for name in list(changed) if name.endswith("_share")}
    try:
        patch = ProfilePatch.model_validate(changed | ({"shares": shares} if shares else {}))
    except ValidationError as error:
        labels = {each.name: each.label for each in ALL_SETTINGS}
        wrong = [
            (f"{fault['loc'][1]}_share" if fault["loc"][0] == "shares" else str(fault["loc"][0]), fault["msg"])
            for fault in error.errors()
        ]
        reasons = "; ".join(f"“{labels[name]}”: {message}" for name, message in wrong)
        raise HTTPException(422, f"nothing was changed. {reasons}") from None
    await put_profile(looking.agent, patch, looking.parts, looking.author)
    return go(f"{ROOT}/user", agent=looking.agent)


async def _values(looking: Visitor, agent: str) -> dict[str, Any]:
    """Returns the settings of a profile by the names of the form."""
    profile = await get_profile(agent, looking.parts, looking.author)
    return {**dict(profile), **{f"{part}_share": share for part, share in profile.shares}}


def _value(setting: Setting, form: Fields) -> object:
    text = form.get(setting.name, "").strip()
    if setting.kind == "switch":
        return text == "on"
    if setting.kind == "tools":
        pairs = [line.strip().rpartition(":") for line in text.splitlines() if line.strip()]
        try:
            names = [json.loads(name) if name.startswith('"') else name.strip() for name, _, _ in pairs]
        except ValueError:
            names = [""]
        if not all(names):
            raise HTTPException(422, f"nothing was changed: each line of “{setting.label}” must be “tool: kind”")
        return {name: kind.strip() for name, (_, _, kind) in zip(names, pairs, strict=True)}
    if not text and setting.may_be_empty:
        return None
    if setting.kind == "choice":
        return text
    try:
        return int(text) if setting.kind == "whole" else float(text)
    except ValueError:
        wanted = "a whole number" if setting.kind == "whole" else "a number"
        raise HTTPException(422, f"nothing was changed: “{setting.label}” must be {wanted}") from None
