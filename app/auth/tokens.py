"""Bearer tokens, issued and verified by PyJWT: the caller, and the user whose memory the request is about."""

import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TypeGuard
from uuid import uuid4

import jwt
from cachetools import LRUCache

from app.auth.errors import NotAllowed, NotAuthenticated, UserNotNamed
from app.auth.keys import PublishedKeys, SharedSecret, key_id
from app.auth.revocations import Revocations, sha256
from writer.audit.signing import TOMBSTONE
from writer.author import Author

ACT_AS = "casebank:act-as"
"""Scope that lets a service act for the user it names in `X-Casebank-User`, and reward runs as judge or metric."""

OPERATOR = "casebank:operator"
"""Scope that shows the numbers of the installation: `/metrics`, and those in `/readyz`."""

LEEWAY_S = 30.0
"""Seconds that the issuer's clock may be ahead: a token may have been issued so much earlier than it says."""

MAX_TOKEN_CHARS = 8 * 1024
REMEMBERED = 10_000
"""Most tokens whose verdict is kept."""
MAX_USER_CHARS = 255
REQUIRED_CLAIMS = ["exp", "iat", "iss", "aud", "sub"]

_REASONS: list[tuple[type[jwt.PyJWTError], str]] = [
    (jwt.ExpiredSignatureError, "the token has expired"),
    (jwt.ImmatureSignatureError, "the token is not valid yet"),
    (jwt.InvalidAudienceError, "the token is meant for another audience"),
    (jwt.InvalidIssuerError, "the token comes from another issuer"),
    (jwt.InvalidSignatureError, "the token was signed with another secret or key, or was changed since"),
    (jwt.MissingRequiredClaimError, f"the token lacks one of the claims {', '.join(REQUIRED_CLAIMS)}"),
]


@dataclass(frozen=True, slots=True)
class Bearer:
    """Claims of a valid token.

    Attributes:
        subject: name of a user or a service.
        jti: the token's id; None: the token cannot be revoked alone.
        key_id: name of the key that verified the token, published or made by ``key_id``.
        authorised_at: earliest time of issue, with the issuer's clock ahead by the leeway; so a token from before a
            purge cannot pass for one from after it.
        is_operator: True if the token has the scope that shows the numbers of the installation.
    """

    subject: str
    jti: str | None
    key_id: str
    authorised_at: datetime
    expires_at: datetime
    is_service: bool
    is_operator: bool


@dataclass(frozen=True, slots=True)
class TokenVerifier:
    """Turns the headers of a request into its author; the source of the keys decides the algorithms."""

    keys: SharedSecret | PublishedKeys
    issuer: str
    audience: str
    leeway_s: float = LEEWAY_S
    revocations: Revocations = field(default_factory=Revocations)
    _verdicts: LRUCache[bytes, tuple[Bearer, str | jwt.PyJWK, str | None]] = field(
        default_factory=lambda: LRUCache(REMEMBERED), repr=False
    )
    """Valid tokens of late, by digest: the claims, the key that verified them, and the key's name in the token."""

    async def identify(self, authorization: str | None, acting_for: str | None) -> Author:
        """Returns the caller and the user, from the values of `Authorization` and `X-Casebank-User`.

        Raises:
            NotAuthenticated, NotAllowed, UserNotNamed, KeysUnavailable: see app.auth.errors.
        """
        bearer = await self.bearer(authorization)
        actor = bearer.subject
        if acting_for is None and bearer.is_service:
            raise UserNotNamed(f"a token with the scope {ACT_AS} names the user it acts for in X-Casebank-User")
        user = actor if acting_for is None else _user_in(acting_for)
        if user != actor and not bearer.is_service:
            raise NotAllowed(f"acting for another user needs the scope {ACT_AS}")
        begun = self.revocations.admitted(user, actor) if user != actor else None
        since = max(filter(None, (begun, bearer.authorised_at)))
        return Author(user, actor, since, bearer.is_service)

    async def bearer(self, authorization: str | None) -> Bearer:
        """Returns the claims of the token in an Authorization header, if it is valid and was not revoked.

        Raises:
            NotAuthenticated, KeysUnavailable: see app.auth.errors.
            DatabaseUnavailable: it does not answer, so revocations cannot be checked.
        """
        if authorization is None:
            raise NotAuthenticated("the Authorization header is missing")
        if len(authorization) > MAX_TOKEN_CHARS + len("Bearer "):
            raise NotAuthenticated("the token is too long")
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer" or not token or not token.isascii():
            raise NotAuthenticated("the Authorization header must be 'Bearer' and a token")
        bearer = await self._verified(token)
        await self.revocations.fresh()
        if self.revocations.revoked(bearer.subject, bearer.jti, bearer.authorised_at):
            raise NotAuthenticated("the token was revoked")
        return bearer

    async def _verified(self, token: str) -> Bearer:
        """Returns the token's claims, after a check of its signature, times, issuer and audience.

        The verdict is kept: while the token has not expired and its key serves, it is not checked again.
        """
        known, by, kid = self._verdicts.get(sha256(token), (None, None, None))
        try:
            kid = kid if known else jwt.get_unverified_header(token).get("kid")
            keys: Sequence[str | jwt.PyJWK] = await self.keys.find(kid)
            earliest_end = datetime.now(UTC) - timedelta(seconds=self.leeway_s)
            if known is not None and known.expires_at > earliest_end and by in keys:
                return known
            for key in keys[:-1]:
                with suppress(jwt.InvalidSignatureError):
                    return self._decode(token, kid, key)
            return self._decode(token, kid, keys[-1])
        except jwt.PyJWTError as error:
            reason = next((text for kind, text in _REASONS if isinstance(error, kind)), "the token is not valid")
            raise NotAuthenticated(reason) from None  # without its cause, whose text can quote what the caller sent

    def _decode(self, token: str, kid: str | None, key: str | jwt.PyJWK) -> Bearer:
        claims: dict[str, object] = jwt.decode(
            token,
            key,
            algorithms=self.keys.algorithms,
            options={"require": REQUIRED_CLAIMS, "enforce_minimum_key_length": True},
            issuer=self.issuer,
            audience=self.audience,
            leeway=self.leeway_s,
        )
        subject, jti = claims["sub"], claims.get("jti")
        if not is_user(subject):
            raise NotAuthenticated("the token's subject cannot be a user's name")
        scope = claims.get("scope")
        scopes = scope.split(" ") if isinstance(scope, str) else scope if isinstance(scope, list) else []  # RFC 8693
        bearer = Bearer(
            subject=subject,
            jti=jti if isinstance(jti, str) else None,
            key_id=key_id(key) if isinstance(key, str) else str(key.key_id),
            authorised_at=_time(claims["iat"], "of issue", self.leeway_s),
            expires_at=_time(claims["exp"], "of its end"),
            is_service=ACT_AS in scopes,
            is_operator=OPERATOR in scopes,
        )
        self._verdicts[sha256(token)] = bearer, key, kid
        return bearer


def issue_token(  # noqa: PLR0913 - each is a claim
    secret: str, *, user: str, issuer: str, audience: str, ttl: timedelta, now: datetime, scope: str = ""
) -> str:
    """Returns an HS256 token for `user`, valid from `now` for `ttl`, with an id by which it can be revoked.

    Raises:
        ValueError: the secret is shorter than 32 bytes, or no user can have the name.
    """
    if not is_user(user):
        raise ValueError(f"a user's name has 1 to {MAX_USER_CHARS} characters, none of them a control character")
    claims = {"sub": user, "iss": issuer, "aud": audience, "iat": now, "exp": now + ttl, "jti": uuid4().hex}
    if scope:
        claims["scope"] = scope
    signer = SharedSecret(secret).secret
    return jwt.encode(claims, signer, algorithm=SharedSecret.algorithms[0], headers={"kid": key_id(signer)})


def is_user(name: object) -> TypeGuard[str]:
    """Returns whether the name is valid for a user: 1 to 255 characters, each storable and printable in a log.

    The text that replaces an erased user in the audit is not valid.
    """
    if not isinstance(name, str) or not 1 <= len(name) <= MAX_USER_CHARS or TOMBSTONE.fullmatch(name):
        return False
    return not any(unicodedata.category(char) in {"Cc", "Cs"} for char in name)


def _user_in(acting_for: str) -> str:
    """Returns the user of an X-Casebank-User header, whose bytes are UTF-8 but reach us read as Latin-1."""
    try:
        name = acting_for.encode("latin-1").decode()
    except UnicodeError:
        name = ""
    if not is_user(name):
        raise NotAllowed(f"X-Casebank-User needs 1 to {MAX_USER_CHARS} characters in UTF-8, none a control character")
    return name


def _time(seconds: object, which: str, before_s: float = 0.0) -> datetime:
    """Returns the time of a claim, or a time so many seconds before it."""
    try:
        time = datetime.fromtimestamp(int(seconds if isinstance(seconds, int | float) else str(seconds)), UTC)
        return time - timedelta(seconds=before_s)
    except (ValueError, OverflowError, OSError):  # long before the first year there is
        raise NotAuthenticated(f"the token's time {which} is not a time") from None
