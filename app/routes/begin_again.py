"""Route that restarts the memory of an erased user."""

from datetime import datetime

from fastapi import Request
from pydantic import BaseModel

from app.auth.tokens import TokenVerifier
from app.edge.dependencies import Caller, Parts
from app.edge.routers import api_router
from app.schemas.bank import BeginAgainIn
from writer.rights import erase


class BeginAgainOut(BaseModel):
    """The confirmed erasure, and the time from which tokens are accepted for this user again."""

    erased_at: datetime
    begun_at: datetime


router = api_router("users", "/v1/users")


@router.post("/begin-again")
async def begin_again(body: BeginAgainIn, request: Request, parts: Parts, caller: Caller) -> BeginAgainOut:
    """Restarts the memory of an erased user for a service, whose tokens from before the purge no longer get a 410.

    The user's own token must be newer than the purge. Other replicas follow within two seconds.
    """
    begun_at = await erase.begin_again(parts.database, caller, body.erased_at)
    if caller.actor != caller.user_sub:
        verifier: TokenVerifier = request.app.state.verifier
        verifier.revocations.admit(caller.user_sub, caller.actor, begun_at)
    return BeginAgainOut(erased_at=body.erased_at, begun_at=begun_at)
