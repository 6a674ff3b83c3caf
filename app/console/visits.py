"""Visits: a person's stay in the console, carried by a sealed cookie; and the links that begin one without a token.

The cookie holds no token. Its key is derived from the master key, so that every replica reads it, and so does the
command that makes a link. A visit ends with its time, its token's, at sign-out, or when that token is revoked.
"""

import base64
import secrets
from datetime import UTC, datetime, timedelta
from typing import Literal, Self, TypeVar

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from pydantic import AwareDatetime, BaseModel, Field, ValidationError

from app.auth.revocations import Revocations
from app.auth.tokens import LEEWAY_S, Bearer
from app.settings import Settings

LONGEST = timedelta(hours=12)
LINK_VALID_FOR = timedelta(minutes=2)
MAX_CHARS = 4_000
"""Of a cookie or a link's code; longer ones are nobody's."""

_PURPOSE = b"casebank console 1"


def _random() -> str:
    return secrets.token_urlsafe(24)


class Visit(BaseModel):
    """Who visits, since when they may, and until when.

    Attributes:
        id: by which it is ended at sign-out, on every replica.
        form_token: what every form of the visit carries, and no other site knows.
        user_sub: whose bank it shows.
        jti: of the token that it began with; None: of none, or of one without an id.
        authorised_at: since when the user may at the least.
        ends_at: at the latest.
        is_operator: whether it shows the numbers of the installation.
    """

    audience: Literal["console"] = "console"
    id: str = Field(default_factory=_random)
    form_token: str = Field(default_factory=_random)
    user_sub: str
    jti: str | None
    authorised_at: AwareDatetime
    ends_at: AwareDatetime
    is_operator: bool

    @classmethod
    def by_token(cls, bearer: Bearer, now: datetime) -> Self:
        """Returns the visit that a token begins."""
        return cls(
            user_sub=bearer.subject,
            jti=bearer.jti,
            authorised_at=bearer.authorised_at,
            ends_at=min(bearer.expires_at, now + LONGEST),
            is_operator=bearer.is_operator,
        )


class Link(BaseModel):
    """What a one-time link says: who may visit, and since when. Its id is used up with the first visit."""

    audience: Literal["console link"] = "console link"
    id: str = Field(default_factory=_random)
    user_sub: str
    made_at: AwareDatetime
    is_operator: bool

    @property
    def ends_at(self) -> datetime:
        """When it is good no more."""
        return self.made_at + LINK_VALID_FOR

    def visit(self) -> Visit:
        """Returns the visit that it begins."""
        return Visit(
            user_sub=self.user_sub,
            jti=None,
            authorised_at=self.made_at - timedelta(seconds=LEEWAY_S),  # whose clock may be ahead of the database's
            ends_at=self.made_at + LONGEST,
            is_operator=self.is_operator,
        )


Sealed = TypeVar("Sealed", Visit, Link)


class VisitSeal:
    """Seals visits and links, and opens those that are whole and not over."""

    def __init__(self, master_key: bytes, older: tuple[bytes, ...] = ()) -> None:
        """Derives the keys: the first seals, all of them open."""
        self._fernet = MultiFernet([Fernet(_derived(key)) for key in (master_key, *older)])

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Returns the seal of the installation.

        Raises:
            NoMasterKey: there is none.
        """
        return cls(settings.master_key_bytes, settings.old_master_keys)

    def seal(self, what: Visit | Link) -> str:
        """Returns it as text that fits a cookie and an address, and that nobody else can read, make or change."""
        return self._fernet.encrypt(what.model_dump_json().encode()).decode()

    def open(self, kind: type[Sealed], text: str | None, now: datetime | None = None) -> Sealed | None:
        """Returns what was sealed; None where that is over, of another kind, or not ours."""
        if not text or len(text) > MAX_CHARS or not text.isascii():
            return None
        try:
            opened = kind.model_validate_json(self._fernet.decrypt(text, ttl=int(LONGEST.total_seconds())))
        except (InvalidToken, ValidationError):
            return None
        return opened if (now or datetime.now(UTC)) < opened.ends_at else None


def is_over(visit: Visit, revocations: Revocations) -> bool:
    """Returns whether the visit was ended, or the token that it began with was revoked.

    Raises:
        DatabaseUnavailable: nobody can say.
    """
    ids = (visit.jti, visit.id)
    return any(revocations.revoked(visit.user_sub, each, visit.authorised_at) for each in ids)


def _derived(master_key: bytes) -> bytes:
    return base64.urlsafe_b64encode(HKDF(SHA256(), 32, salt=None, info=_PURPOSE).derive(master_key))
