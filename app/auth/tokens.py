"""Who is calling, and whose memory they may touch: bearer tokens, verified by PyJWT.

    CasebankError
    ├── NotAuthenticated   the header or the token in it is missing, malformed, expired or not meant for us
    ├── NotAllowed         the token is good, but does not let its bearer act for that user
    ├── UserNotNamed       the token lets its bearer act for users, and no user is named
    └── KeysUnavailable    the issuer's public keys cannot be fetched; a later try may succeed

No message holds any part of the token, so all of them can be shown to the caller.
"""

import asyncio
import hashlib
import math
import time
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Self, TypeGuard
from uuid import uuid4

import jwt
import structlog
from pydantic import AwareDatetime, BaseModel, Field

from app.auth.revocations import Revocations
from retrieval.errors import CasebankError
from writer.audit.signing import TOMBSTONE

ACT_AS = "casebank:act-as"
"""The scope that lets a service act for the user it names in `X-Casebank-User`, and judge runs as judge or metric."""

OPERATOR = "casebank:operator"
"""The scope that shows the numbers of the installation: `/metrics`, and those in `/readyz`."""

LEEWAY_S = 30.0
"""How far the issuer's clock may be off: a token may have been issued so much earlier than it says."""

MAX_TOKEN_CHARS = 8 * 1024
MAX_USER_CHARS = 255
MIN_SECRET_BYTES = 32  # HS256 is as strong as its secret, up to the 256 bits of the hash
REQUIRED_CLAIMS = ["exp", "iat", "iss", "aud", "sub"]

_REASONS: list[tuple[type[jwt.PyJWTError], str]] = [
    (jwt.ExpiredSignatureError, "the token has expired"),
    (jwt.ImmatureSignatureError, "the token is not valid yet"),
    (jwt.InvalidAudienceError, "the token is meant for another audience"),
    (jwt.InvalidIssuerError, "the token comes from another issuer"),
    (jwt.MissingRequiredClaimError, f"the token lacks one of the claims {', '.join(REQUIRED_CLAIMS)}"),
]

_log = structlog.get_logger(__name__)


class NotAuthenticated(CasebankError):
    """The caller has not shown who they are."""


class NotAllowed(CasebankError):
    """The caller is known, but may not act for the user they name."""


class UserNotNamed(CasebankError):
    """The caller may act for users, and names none: their memory must not end up in one pool, the caller's own."""


class KeysUnavailable(CasebankError):
    """The issuer's keys cannot be fetched, and the token names one not seen before."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A verified caller.

    Attributes:
        user_sub: whose memory it is.
        actor: the token's subject.
        issued_at: as the token says.
        authorised_at: since when the caller may at the least: the issuer's clock may have been ahead by the leeway, and
            a token that was issued before a purge must not pass for one from after it.
        is_service: whether the token has the scope that lets it act for users.
    """

    user_sub: str
    actor: str
    issued_at: datetime
    authorised_at: datetime = field(default=datetime.min.replace(tzinfo=UTC), compare=False)
    is_service: bool = False


@dataclass(frozen=True, slots=True)
class Bearer:
    """What a good token says of who holds it.

    Attributes:
        subject: a name that a user can have.
        jti: the token's id; None: it has none, and cannot be revoked alone.
        issued_at: as the token says.
        authorised_at: the earliest time at which it can have been issued.
        expires_at: as the token says.
        is_service: whether it has the scope that lets it act for users.
        is_operator: whether it has the scope that shows the numbers of the installation.
    """

    subject: str
    jti: str | None
    issued_at: datetime
    authorised_at: datetime
    expires_at: datetime
    is_service: bool
    is_operator: bool


class OldSecret(BaseModel):
    """A secret that signs nothing any more, and whose tokens are good until a time."""

    secret: str = Field(repr=False)
    until: AwareDatetime


@dataclass(frozen=True, slots=True)
class SharedSecret:
    """The HS256 keys of issuer and verifier: the one that signs, and older ones while their overlap lasts.

    Raises ValueError when a secret is shorter than 32 bytes.
    """

    secret: str = field(repr=False)
    older: tuple[OldSecret, ...] = ()
    algorithm: ClassVar[str] = "HS256"

    def __post_init__(self) -> None:
        if any(
            len(secret.encode()) < MIN_SECRET_BYTES for secret in (self.secret, *(old.secret for old in self.older))
        ):
            raise ValueError(f"an HS256 secret must have at least {MIN_SECRET_BYTES} bytes")

    async def find(self, kid: str | None) -> Sequence[str]:
        """Return the secrets that may have signed a token, whatever key it names; the one that it names first."""
        now = datetime.now(UTC)
        good = [self.secret, *(old.secret for old in self.older if now < old.until)]
        return sorted(good, key=lambda secret: key_id(secret) != kid)

    async def known(self) -> bool:
        """Return that there is something to check tokens with."""
        return True


def key_id(secret: str) -> str:
    """Return the name of a secret in the head of a token, from which it cannot be found."""
    return hashlib.sha256(b"casebank jwt secret\0" + secret.encode()).hexdigest()[:16]


@dataclass(slots=True)
class PublishedKeys:
    """The RS256 keys that an issuer publishes as a JWKS, fetched when a token needs them.

    A key serves for `lifespan_s` after it was fetched and, while the issuer does not answer, for
    `outage_s`. However many unknown keys are asked for, a fetch starts at most every `refetch_after_s`.
    PyJWKClient's own cache is off: it forgets every key at the end of its lifespan, answer or no
    answer, and its cooldown does not count the fetches that failed.
    """

    url: str
    timeout_s: float = 5
    lifespan_s: float = 300
    outage_s: float = 3600
    refetch_after_s: float = 10
    clock: Callable[[], float] = time.monotonic
    algorithm: ClassVar[str] = "RS256"
    _client: jwt.PyJWKClient = field(init=False, repr=False)
    _keys: Mapping[str, jwt.PyJWK] = field(init=False, repr=False, default_factory=dict)
    _fetched_at: float = field(init=False, default=-math.inf)
    _tried_at: float = field(init=False, default=-math.inf)
    _answered: bool = field(init=False, default=False)
    _fetching: asyncio.Task[None] | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        self._client = jwt.PyJWKClient(self.url, cache_jwk_set=False, timeout=self.timeout_s)

    async def find(self, kid: str | None) -> Sequence[jwt.PyJWK]:
        """Return the one key named `kid`, fetching the set first if the key is unknown or old.

        Raises NotAuthenticated for a key the issuer does not publish, KeysUnavailable when it cannot be asked.
        """
        if kid is None:
            raise NotAuthenticated("the token names no key")
        if not self._has(kid, self.lifespan_s):
            await self._refreshed()
        if self._has(kid, self.outage_s):
            return [self._keys[kid]]
        if self._answered:
            raise NotAuthenticated("the token is signed with a key that its issuer does not publish")
        raise KeysUnavailable("the issuer's public keys cannot be fetched")

    async def known(self) -> bool:
        """Return whether the issuer has ever answered; ask it, in its turn, where it has not."""
        if not self._keys:
            await self._refreshed()
        return bool(self._keys)

    def _has(self, kid: str, max_age_s: float) -> bool:
        return kid in self._keys and self.clock() - self._fetched_at <= max_age_s

    async def _refreshed(self) -> None:
        """Join the fetch under way; start one if the last is long enough ago."""
        now = self.clock()
        if now - self._tried_at >= self.refetch_after_s:
            self._tried_at = now
            self._fetching = asyncio.create_task(self._fetch())
        if self._fetching is not None:
            # One caller hanging up must not take the fetch from the others.
            await asyncio.shield(self._fetching)

    async def _fetch(self) -> None:
        """Replace the keys by what the issuer publishes now, or leave them and note that it did not answer."""
        try:
            fetched = asyncio.to_thread(self._client.get_signing_keys)
            # The client's timeout is per read; this one also ends an answer that trickles in.
            keys = await asyncio.wait_for(fetched, self.timeout_s)
            self._keys = {key.key_id: key for key in keys if key.key_id}
        except Exception as error:  # noqa: BLE001 - whatever the far end sent, the keys at hand go on working
            self._answered = False
            _log.warning("jwks_fetch_failed", error=type(error).__name__)
        else:
            self._fetched_at, self._answered = self.clock(), True


@dataclass(frozen=True, slots=True)
class TokenVerifier:
    """Turns the headers of a request into an Identity; the source of the keys decides the one algorithm."""

    keys: SharedSecret | PublishedKeys
    issuer: str
    audience: str
    leeway_s: float = LEEWAY_S
    revocations: Revocations = field(default_factory=Revocations)

    @classmethod
    def hs256(
        cls, secret: str, issuer: str, audience: str, *, older: tuple[OldSecret, ...] = (), leeway_s: float = LEEWAY_S
    ) -> Self:
        """Return a verifier of tokens signed with shared secrets. Raises ValueError if one is under 32 bytes."""
        return cls(SharedSecret(secret, older), issuer, audience, leeway_s)

    @classmethod
    def rs256(cls, jwks_url: str, issuer: str, audience: str, *, leeway_s: float = LEEWAY_S) -> Self:
        """Return a verifier of tokens signed with the keys published at `jwks_url`.

        Raises jwt.PyJWKClientError if that is no http or https URL; nothing is fetched yet.
        """
        return cls(PublishedKeys(jwks_url), issuer, audience, leeway_s)

    async def identify(self, authorization: str | None, acting_for: str | None) -> Identity:
        """Return who calls, and for whom, from the values of `Authorization` and `X-Casebank-User`.

        Raises NotAuthenticated, NotAllowed, UserNotNamed, KeysUnavailable.
        """
        bearer = await self.bearer(authorization)
        actor = bearer.subject
        if acting_for is None and bearer.is_service:
            raise UserNotNamed(f"a token with the scope {ACT_AS} names the user it acts for in X-Casebank-User")
        user = actor if acting_for is None else _named(acting_for)
        if user != actor and not bearer.is_service:
            raise NotAllowed(f"acting for another user needs the scope {ACT_AS}")
        begun = self.revocations.admitted(user, actor) if user != actor else None
        since = max(filter(None, (begun, bearer.authorised_at)))
        return Identity(user, actor, bearer.issued_at, since, bearer.is_service)

    async def operator(self, authorization: str | None) -> None:
        """Let through whoever may see the numbers of the installation.

        Raises NotAuthenticated, NotAllowed, KeysUnavailable.
        """
        if not (await self.bearer(authorization)).is_operator:
            raise NotAllowed(f"the numbers of the installation need the scope {OPERATOR}")

    async def bearer(self, authorization: str | None) -> Bearer:
        """Return what a token says that is good and was not revoked.

        Raises NotAuthenticated, KeysUnavailable.
        """
        claims = await self._verified(_bearer(authorization))
        subject, jti, scopes = claims["sub"], claims.get("jti"), _scopes(claims)
        if not is_user(subject):
            raise NotAuthenticated("the token's subject cannot be a user's name")
        issued_at = _time(claims["iat"], "of issue")
        named = jti if isinstance(jti, str) else None
        bearer = Bearer(
            subject=subject,
            jti=named,
            issued_at=issued_at,
            authorised_at=self._surely(issued_at),
            expires_at=_time(claims["exp"], "of its end"),
            is_service=ACT_AS in scopes,
            is_operator=OPERATOR in scopes,
        )
        if self.revocations.revoked(subject, named, bearer.authorised_at):
            raise NotAuthenticated("the token was revoked")
        return bearer

    def _surely(self, issued_at: datetime) -> datetime:
        """Return the earliest time at which the token can have been issued, its issuer's clock being ahead."""
        return issued_at - timedelta(seconds=self.leeway_s)

    async def _verified(self, token: str) -> dict[str, object]:
        """Return the token's claims; its signature, times, issuer and audience are good."""
        try:
            keys = await self.keys.find(jwt.get_unverified_header(token).get("kid"))
            return self._decoded(token, keys)
        except jwt.PyJWTError as error:
            # The cause is cut off: its text can quote what the caller sent.
            raise NotAuthenticated(_reason(error)) from None

    def _decoded(self, token: str, keys: Sequence[str | jwt.PyJWK]) -> dict[str, object]:
        """Return the claims, by the first of the keys whose signature it is."""
        for key in keys[:-1]:
            with suppress(jwt.InvalidSignatureError):
                return self._decode(token, key)
        return self._decode(token, keys[-1])

    def _decode(self, token: str, key: str | jwt.PyJWK) -> dict[str, object]:
        claims: dict[str, object] = jwt.decode(
            token,
            key,
            algorithms=[self.keys.algorithm],
            options={"require": REQUIRED_CLAIMS, "enforce_minimum_key_length": True},
            issuer=self.issuer,
            audience=self.audience,
            leeway=self.leeway_s,
        )
        return claims


def issue_token(  # noqa: PLR0913 - each is a claim
    secret: str, *, user: str, issuer: str, audience: str, ttl: timedelta, now: datetime, scope: str = ""
) -> str:
    """Return an HS256 token for `user`, good from `now` for `ttl`, with an id by which it can be revoked.

    Raises ValueError for a secret under 32 bytes, or a name that no user can have.
    """
    if not is_user(user):
        raise ValueError(f"a user's name has 1 to {MAX_USER_CHARS} characters, none of them a control character")
    claims = {"sub": user, "iss": issuer, "aud": audience, "iat": now, "exp": now + ttl, "jti": uuid4().hex}
    if scope:
        claims["scope"] = scope
    signer = SharedSecret(secret).secret
    return jwt.encode(claims, signer, algorithm=SharedSecret.algorithm, headers={"kid": key_id(signer)})


def is_user(name: object) -> TypeGuard[str]:
    """Return whether a user may be called so: 1 to 255 characters, all of them storable and printable in a log.

    What stands for an erased user in the audit is nobody's name.
    """
    if not isinstance(name, str) or not 1 <= len(name) <= MAX_USER_CHARS or TOMBSTONE.fullmatch(name):
        return False
    return not any(unicodedata.category(char) in {"Cc", "Cs"} for char in name)


def _bearer(authorization: str | None) -> str:
    """Return the token, still unverified."""
    if authorization is None:
        raise NotAuthenticated("the Authorization header is missing")
    if len(authorization) > MAX_TOKEN_CHARS + len("Bearer "):
        raise NotAuthenticated("the token is too long")
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or not token or not token.isascii():
        raise NotAuthenticated("the Authorization header must be 'Bearer' and a token")
    return token


def _named(acting_for: str) -> str:
    """Return the user named in a header, whose bytes are UTF-8 but reach us read as Latin-1."""
    try:
        name = acting_for.encode("latin-1").decode()
    except UnicodeError:
        name = ""
    if not is_user(name):
        raise NotAllowed("the header names no possible user")
    return name


def _scopes(claims: Mapping[str, object]) -> Sequence[object]:
    """Return the scopes granted, from a list or, as RFC 8693 has it, a string with spaces."""
    scope = claims.get("scope")
    if isinstance(scope, str):
        return scope.split(" ")
    return scope if isinstance(scope, list) else []


def _time(seconds: object, which: str) -> datetime:
    try:
        return datetime.fromtimestamp(int(seconds if isinstance(seconds, int | float) else str(seconds)), UTC)
    except (ValueError, OverflowError, OSError):  # long before the first year there is
        raise NotAuthenticated(f"the token's time {which} is not a time") from None


def _reason(error: jwt.PyJWTError) -> str:
    """Return what was wrong, in words that quote nothing of the token."""
    return next((reason for kind, reason in _REASONS if isinstance(error, kind)), "the token is not valid")
