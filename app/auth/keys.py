"""Keys that verify tokens: a shared secret with older ones, or the keys that an issuer publishes."""

import asyncio
import hashlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ClassVar

import jwt
import structlog
from pydantic import AwareDatetime, BaseModel, Field

from app.auth.errors import KeysUnavailable, NotAuthenticated

MIN_SECRET_BYTES = 32  # HS256 is as strong as its secret, up to the 256 bits of the hash

_log = structlog.get_logger(__name__)


class OldSecret(BaseModel):
    """A secret that signs no new tokens; those that it signed are valid until a time."""

    secret: str = Field(repr=False)
    until: AwareDatetime


@dataclass(frozen=True, slots=True)
class SharedSecret:
    """HS256 keys of issuer and verifier: the secret that signs, and older ones until their end.

    Raises:
        ValueError: a secret is shorter than 32 bytes.
    """

    secret: str = field(repr=False)
    older: tuple[OldSecret, ...] = ()
    algorithms: ClassVar[Sequence[str]] = ("HS256",)

    def __post_init__(self) -> None:
        if any(
            len(secret.encode()) < MIN_SECRET_BYTES for secret in (self.secret, *(old.secret for old in self.older))
        ):
            raise ValueError(f"an HS256 secret must have at least {MIN_SECRET_BYTES} bytes")

    async def find(self, kid: str | None) -> Sequence[str]:
        """Returns the secrets that may have signed a token, beginning with the one that the token names."""
        now = datetime.now(UTC)
        good = [self.secret, *(old.secret for old in self.older if now < old.until)]
        return sorted(good, key=lambda secret: key_id(secret) != kid)

    async def serves(self, kid: str) -> bool:
        """Returns whether the secret of this name is in use, for new tokens or for those of before."""
        return any(key_id(secret) == kid for secret in await self.find(kid))

    async def known(self) -> bool:
        """Returns True: a secret is always there."""
        return True


def key_id(secret: str) -> str:
    """Returns the name of a secret in a token's header; the secret cannot be computed from it."""
    return hashlib.sha256(b"casebank jwt secret\0" + secret.encode()).hexdigest()[:16]


@dataclass(slots=True)
class PublishedKeys:
    """RS256 and ES256 keys that an issuer publishes as a JWKS, fetched when a token needs them.

    A key serves for `lifespan_s` after it was fetched and, while the issuer does not answer, for
    `outage_s`. A fetch starts at most every `refetch_after_s`, however many unknown keys are requested.
    PyJWKClient's own cache is off: it forgets every key at the end of its lifespan, answer or no
    answer, and its cooldown does not count the fetches that failed.

    Raises:
        jwt.PyJWKClientError: the URL is not http or https.
    """

    url: str
    timeout_s: float = 5
    lifespan_s: float = 300
    outage_s: float = 3600
    refetch_after_s: float = 10
    clock: Callable[[], float] = time.monotonic
    algorithms: ClassVar[Sequence[str]] = ("RS256", "ES256")
    """Algorithms of tokens; a published key is used with its own one alone."""
    _client: jwt.PyJWKClient = field(init=False, repr=False)
    _keys: Mapping[str, jwt.PyJWK] = field(init=False, repr=False, default_factory=dict)
    _fetched_at: float = field(init=False, default=-math.inf)
    _tried_at: float = field(init=False, default=-math.inf)
    _answered: bool = field(init=False, default=False)
    _fetching: asyncio.Task[None] | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        self._client = jwt.PyJWKClient(self.url, cache_jwk_set=False, timeout=self.timeout_s)

    async def find(self, kid: str | None) -> Sequence[jwt.PyJWK]:
        """Returns the key named `kid`, after a fetch of the set if the key is unknown or old.

        Raises:
            NotAuthenticated: the issuer does not publish the key.
            KeysUnavailable: the issuer does not answer.
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

    async def serves(self, kid: str) -> bool:
        """Returns whether the issuer publishes the key of this name.

        Raises:
            KeysUnavailable: the issuer does not answer.
        """
        try:
            return bool(await self.find(kid))
        except NotAuthenticated:
            return False

    async def known(self) -> bool:
        """Returns whether the issuer has ever answered; asks it again if it has not."""
        if not self._keys:
            await self._refreshed()
        return bool(self._keys)

    def _has(self, kid: str, max_age_s: float) -> bool:
        return kid in self._keys and self.clock() - self._fetched_at <= max_age_s

    async def _refreshed(self) -> None:
        """Waits for the fetch under way; starts one if the last is long enough ago."""
        now = self.clock()
        if now - self._tried_at >= self.refetch_after_s:
            self._tried_at = now
            self._fetching = asyncio.create_task(self._fetch())
        if self._fetching is not None:
            # One caller hanging up must not take the fetch from the others.
            await asyncio.shield(self._fetching)

    async def _fetch(self) -> None:
        """Replaces the keys by the published ones; without an answer it keeps them and notes the failure."""
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
