"""Texts that are sealed (encrypted) with the user's key: seals that open them, and rows that decrypt theirs when read.

A row is sealed if its column ``words`` is not NULL: it holds the encrypted texts, and their own columns are empty. A
sealed plan has a token in the place of each step, the same for equal steps of one user, so that the database and the
rules of a slate still see which runs did the same.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol
from uuid import UUID

from policy.channels import words
from retrieval.database.database import Database
from retrieval.database.fast_path import FastConnection
from retrieval.errors import SealBroken

TERMS, MOVES = "term", "move"
"""Purposes for which texts are hashed with a key: words of tasks, and moves of plans."""
TOOL, SIGN, ERROR, FIX, REQUEST = "tool", "sign", "error", "fix", "request"
"""Further purposes: names of tools, signs of failures, words of errors, parts of fixes, and requests for advice."""


Part = Literal[
    "case",
    "checkpoint",
    "decision",
    "fact",
    "failure",
    "finding",
    "knowledge",
    "payload",
    "run",
    "step",
    "summary",
    "told",
    "turn",
]
"""Parts of rows that are sealed: the texts of a case, its payload, the message of a turn, and so on."""


UNREADABLE = "(unreadable: sealed with another key, or changed in the database)"
"""Text in the place of words that do not decrypt."""


@dataclass(frozen=True, slots=True)
class CaseWords:
    """The decrypted texts of a case."""

    task: str
    plan: list[str]


class UserSeal(Protocol):
    """Encrypts (seals) and decrypts (opens) the texts in one user's rows."""

    @property
    def key_id(self) -> UUID:
        """Id of the user's key; texts sealed with another key cannot be opened."""

    def seal(self, part: Part, value: object, row_id: UUID, *place: int) -> bytes:
        """Encrypts a JSON value for one part of a row, at a place in it such as a turn's number in its session."""

    def open(self, part: Part, sealed: bytes, row_id: UUID, *place: int) -> Any:
        """Decrypts the JSON value that was sealed for the same part, row and place."""

    def numbers(self, purpose: str, texts: Sequence[str]) -> list[int]:
        """Returns a keyed hash of each text, a signed number of 32 bits; other purposes give other hashes."""

    def group_of(self, query: str) -> int:
        """Returns a number that queries share which are equal but for case and white space; it reveals no word."""


class Seals(Protocol):
    """Finds the seal of each user."""

    @property
    def seals_words(self) -> bool:
        """True if the texts of new rows are sealed."""

    async def of_user(self, database: Database, connection: FastConnection) -> UserSeal:
        """Returns the seal of the connection's user; a new user gets a key, which the database stores."""

    def forget(self, user_sub: str) -> None:
        """Forgets the cached key of a user, because the database has another one."""


SealOf = Callable[[FastConnection, UUID], Awaitable[UserSeal]]
"""Function that returns the user's seal for the id of a key, which opens the texts sealed with that key."""


@dataclass(frozen=True, slots=True)
class Opener:
    """Decrypts sealed texts for the user of a connection.

    Attributes:
        seals: the seals of users; None: the bank has no sealed texts.
    """

    database: Database
    seals: Seals | None

    async def of_key(self, connection: FastConnection, key_id: UUID) -> UserSeal:
        """Returns the seal of the connection's user for the key with this id."""
        if self.seals is None:
            raise AssertionError("these words are sealed, and this process has no key to open them")
        seal = await self.seals.of_user(self.database, connection)
        if seal.key_id != key_id:  # the user began anew since this process remembered the key
            self.seals.forget(connection.user_sub)
            seal = await self.seals.of_user(self.database, connection)
        return seal

    async def seal_of(self, connection: FastConnection, rows: Iterable[Any]) -> UserSeal | None:
        """Returns the seal that opens the texts of these rows of cases; None if no row is sealed."""
        key_id = next((row.key_id for row in rows if row.words is not None), None)
        return None if key_id is None else await self.of_key(connection, key_id)

    async def terms(self, connection: FastConnection, rows: Sequence[Any], text: str) -> list[int]:
        """Returns the terms of a text, hashes with the key of the rows; none without seals or rows."""
        if self.seals is None or not rows:
            return []
        return (await self.of_key(connection, rows[0].key_id)).numbers(TERMS, words(text))


def effects_of(effects: Sequence[str], tokens: Sequence[str], words: CaseWords) -> list[str]:
    """Returns a run's effects in words; those that are steps of a sealed plan are stored as tokens."""
    steps = dict(zip(tokens, words.plan, strict=True))
    return [steps.get(effect, effect) for effect in effects]


class OpenedCase:
    """A row of a case whose texts, which are sealed, are decrypted when they are read first."""

    def __init__(self, row: Any, seal: UserSeal) -> None:
        self._row = row
        self._seal = seal

    def __getattr__(self, name: str) -> Any:
        """Returns the value of the column of this name."""
        return getattr(self._row, name)

    @cached_property
    def opened_words(self) -> CaseWords:
        """The decrypted texts of the case."""
        texts = self._seal.open("case", self._row.words, self._row.id)
        return CaseWords(texts["task"], texts["plan"])

    @property
    def task(self) -> str:
        """The decrypted task."""
        return self.opened_words.task

    @property
    def plan(self) -> list[str]:
        """The decrypted plan."""
        return self.opened_words.plan

    @property
    def effects(self) -> list[str]:
        """The effects; those that are steps of the plan are decrypted."""
        effects, tokens = self._row.effects, self._row.plan
        return effects if set(effects).isdisjoint(tokens) else effects_of(effects, tokens, self.opened_words)


def unreadable(rows: Iterable[Any]) -> set[UUID]:
    """Returns the ids of those opened cases whose texts do not decrypt."""
    broken: set[UUID] = set()
    for row in rows:
        if isinstance(row, OpenedCase):
            try:
                row.opened_words  # noqa: B018 - decrypts them
            except SealBroken:
                broken.add(row.id)
    return broken


def opened(row: Any, seal: UserSeal | None) -> Any:  # a row of any statement, or what stands for it here
    """Returns a row of a case with its texts in words; an unsealed row is returned unchanged."""
    return row if seal is None or row.words is None else OpenedCase(row, seal)
