"""What every route asks for: the running parts, and on whose behalf it is called."""

from typing import Annotated

from fastapi import Depends, Header, Request
from fastapi.security import HTTPBearer

from app.auth import Identity, TokenVerifier
from app.runtime import Runtime
from writer.author import Author

_documented = HTTPBearer(auto_error=False, description="`casebank token --user NAME` prints one")


def runtime(request: Request) -> Runtime:
    """Returns the parts of the running process."""
    parts: Runtime = request.app.state.runtime
    return parts


async def author(
    request: Request,
    _scheme: Annotated[object, Depends(_documented)],
    x_casebank_user: Annotated[str | None, Header(description="user to act for; needs scope casebank:act-as")] = None,
) -> Author:
    """Returns who calls, for whom, and since when they may.

    Raises:
        NotAuthenticated, NotAllowed, KeysUnavailable: see TokenVerifier.identify.
    """
    verifier: TokenVerifier = request.app.state.verifier
    identity: Identity = await verifier.identify(request.headers.get("authorization"), x_casebank_user)
    return Author(identity.user_sub, identity.actor, identity.issued_at)


Parts = Annotated[Runtime, Depends(runtime)]
Caller = Annotated[Author, Depends(author)]
