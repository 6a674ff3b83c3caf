"""Visits of the console, stored in a sealed cookie, and the links that start one without a token.

The cookie contains no token. Its key is derived from the master key, so every replica and the command that makes a link
can use it. A visit ends when it or its token expires, at sign-out, when its token is revoked, or when the key that
verified its token is no longer used.
"""

import base64
import secrets
from datetime import UTC, datetime, timedelta
from typing import Literal, Self, TypeVar

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from pydantic import AwareDatetime, BaseModel, Field, ValidationError

from app.auth.tokens import LEEWAY_S, Bearer, TokenVerifier
from app.settings import Settings

LONGEST = timedelta(hours=12)
LINK_VALID_FOR = timedelta(minutes=2)
MAX_CHARS = 4_000
"""Maximum length of a cookie or a link code."""

_PURPOSE = b"casebank console 1"


def _random() -> str:
    return secrets.token_urlsafe(24)


class Visit(BaseModel):
    """A visit: its user, and the time it lasts.

    Attributes:
        id: id of the visit, revoked at sign-out on every replica.
        form_token: secret in every form of the visit, unknown to other sites.
        jti: id of the token that started it; None: started by a link, or by a token without an id.
        key_id: name of the key that verified the token; None: started by a link.
        authorised_at: earliest time of the token's or link's issue; an erasure of the user after it ends the visit.
        is_operator: true: the visit also shows the page of the installation.
    """

    audience: Literal["console"] = "console"
    id: str = Field(default_factory=_random)
    form_token: str = Field(default_factory=_random)
    user_sub: str
    jti: str | None
    key_id: str | None
    authorised_at: AwareDatetime
    ends_at: AwareDatetime
    is_operator: bool

    @classmethod
    def by_token(cls, bearer: Bearer, now: datetime) -> Self:
        """Returns the visit that a token starts."""
        return cls(
            user_sub=bearer.subject,
            jti=bearer.jti,
            key_id=bearer.key_id,
            authorised_at=bearer.authorised_at,
            ends_at=min(bearer.expires_at, now + LONGEST),
            is_operator=bearer.is_operator,
        )


class Link(BaseModel):
    """Content of a one-time sign-in link: its user, its time, and an id, which the first visit uses up."""

    audience: Literal["console link"] = "console link"
    id: str = Field(default_factory=_random)
    user_sub: str
    made_at: AwareDatetime
    is_operator: bool

    @property
    def ends_at(self) -> datetime:
        """The time at which the link expires."""
        return self.made_at + LINK_VALID_FOR

    def visit(self) -> Visit:
        """Returns the visit that the link starts."""
        return Visit(
            user_sub=self.user_sub,
            jti=None,
            key_id=None,
            authorised_at=self.made_at - timedelta(seconds=LEEWAY_S),  # this clock may be ahead of the database's
            ends_at=self.made_at + LONGEST,
            is_operator=self.is_operator,
        )


Sealed = TypeVar("Sealed", Visit, Link)


class VisitSeal:
    """Seals visits and links, and opens those that are intact and not expired."""

    def __init__(self, settings: Settings) -> None:
        """Derives the keys of the installation: the newest one seals, all of them open.

        Raises:
            NoMasterKey: no master key is configured.
        """
        keys = (
            HKDF(SHA256(), 32, salt=None, info=_PURPOSE).derive(key)
            for key in (settings.master_key_bytes, *settings.old_master_keys)
        )
        self._fernet = MultiFernet([Fernet(base64.urlsafe_b64encode(key)) for key in keys])

    def seal(self, what: Visit | Link) -> str:
        """Returns a visit or link as encrypted and authenticated text for a cookie or an address."""
        return self._fernet.encrypt(what.model_dump_json().encode()).decode()

    def open(self, kind: type[Sealed], text: str | None, now: datetime | None = None) -> Sealed | None:
        """Returns the sealed visit or link; None: expired, of another kind, or not authentic."""
        if not text or len(text) > MAX_CHARS or not text.isascii():
            return None
        try:
            opened = kind.model_validate_json(self._fernet.decrypt(text, ttl=int(LONGEST.total_seconds())))
        except (InvalidToken, ValidationError):
            return None
        return opened if (now or datetime.now(UTC)) < opened.ends_at else None


async def is_over(visit: Visit, verifier: TokenVerifier) -> bool:
    """Returns whether the visit was ended, its token revoked, or the key that verified the token is no longer used.

    Raises:
        DatabaseUnavailable, KeysUnavailable: this cannot be checked.
    """
    if visit.key_id is not None and not await verifier.keys.serves(visit.key_id):
        return True
    await verifier.revocations.fresh()
    ids = (visit.jti, visit.id)
    return any(verifier.revocations.revoked(visit.user_sub, each, visit.authorised_at) for each in ids)
