"""Words that are sealed with the user's key: the seals that open them, and rows that open theirs when read.

A row says by itself whether its words are sealed: ``words`` then holds them, and what stood in their columns is empty.
A sealed plan has a token in the place of each step, the same for equal steps of one user, so that the database and the
rules of a slate still see which runs did the same.
"""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeGuard, TypeVar, cast
from uuid import UUID

from policy.channels import words
from retrieval.database.database import Database
from retrieval.database.fast_path import FastConnection

TERMS, MOVES = "term", "move"
"""Purposes of keyed hashes: words of tasks, and moves of plans."""
TOOL, SIGN, ERROR, FIX = "tool", "sign", "error", "fix"
"""Likewise: names of tools, signs of failures, words of errors, and parts of fixes."""


@dataclass(frozen=True, slots=True)
class CaseWords:
    """The words of a case, opened."""

    task: str
    plan: list[str]


class UserSeal(Protocol):
    """Seals and opens the words of one user's rows."""

    @property
    def key_id(self) -> UUID:
        """Id of the key; words sealed with another key do not open."""

    def open_case(self, case_id: UUID, words: bytes) -> CaseWords:
        """Returns the words of a case."""

    def open_turn(self, session_id: UUID, number: int, payload: bytes) -> dict[str, Any]:
        """Decrypts a stored turn of a session and returns its message."""

    def open_summary(self, session_id: UUID, last: int, payload: bytes) -> list[dict[str, Any]]:
        """Decrypts a model's summary of a session's turns up to number ``last`` and returns its lines."""

    def open_fact(self, fact_id: UUID, words: bytes) -> dict[str, str]:
        """Returns the words of a fact: text, subject, attribute, value, unit."""

    def open_knowledge(self, entry_id: UUID, words: bytes) -> dict[str, str]:
        """Returns the words of an entry of knowledge: title, text."""

    def seal_query(self, decision_id: UUID, query: str, rewritten: str | None) -> bytes:
        """Returns the words of a decision, sealed."""

    def seal_told(self, decision_id: UUID, text: str) -> bytes:
        """Returns the text that a decision served, sealed."""

    def numbers(self, purpose: str, texts: Sequence[str]) -> list[int]:
        """Returns a keyed hash of 32 bits, signed, of each text."""

    def group_of(self, query: str) -> int:
        """Returns a number that equal queries share, regardless of case and white space, and that reveals no word."""


class Seals(Protocol):
    """Finds the seals of users."""

    @property
    def seals_words(self) -> bool:
        """True if new rows have their words sealed."""

    async def of_user(self, database: Database, connection: FastConnection) -> UserSeal:
        """Returns the seal of the connection's user; a new user gets a key, from the database."""

    def forget(self, user_sub: str) -> None:
        """Forgets the remembered key, for the database has another one."""


SealOf = Callable[[FastConnection, UUID], Awaitable[UserSeal]]
"""Finds the seal of a key, which opens the words that were sealed with it."""
Row = TypeVar("Row")
"""A row of a statement that reads cases."""


@dataclass(frozen=True, slots=True)
class Opener:
    """Opens sealed words for the user of a connection; without seals the bank must have no sealed words."""

    database: Database
    seals: Seals | None

    async def of_key(self, connection: FastConnection, key_id: UUID) -> UserSeal:
        """Returns the seal of this key."""
        if self.seals is None:
            raise AssertionError("these words are sealed, and this process has no key to open them")
        seal = await self.seals.of_user(self.database, connection)
        if seal.key_id != key_id:  # the user began anew since this process remembered the key
            self.seals.forget(connection.user_sub)
            seal = await self.seals.of_user(self.database, connection)
        return seal

    async def rows(self, connection: FastConnection, rows: Sequence[Row]) -> Sequence[Row]:
        """Returns the rows; those with sealed words open them when they are read."""
        keys = {row.key_id for row in rows if is_sealed(row)}
        if not keys:
            return rows
        seal = await self.of_key(connection, keys.pop())
        return [cast("Row", SealedCase(row, seal)) if is_sealed(row) else row for row in rows]

    async def terms(self, connection: FastConnection, key_id: UUID, text: str) -> list[int]:
        """Returns the terms of a text, by the user's key; none without seals."""
        if self.seals is None:
            return []
        return (await self.of_key(connection, key_id)).numbers(TERMS, words(text))


def effects_of(effects: Sequence[str], tokens: Sequence[str], words: CaseWords) -> list[str]:
    """Returns the effects in words: a run without calls has the steps of its plan as effects, which are tokens."""
    steps = dict(zip(tokens, words.plan, strict=True))
    return [steps.get(effect, effect) for effect in effects]


class SealedRow(Protocol):
    """Columns of a case that say whether its words are sealed."""

    @property
    def id(self) -> UUID:
        """Id of the case."""

    words: bytes | None
    key_id: UUID

    def items(self) -> Iterable[tuple[str, object]]:
        """Returns the columns with their values."""


class SealedCase:
    """A row whose words are opened when they are read; ``plan`` has the tokens, until the whole row is opened.

    The columns are attributes of its own: most are read many times.
    """

    def __init__(self, row: SealedRow, seal: UserSeal) -> None:
        self._row, self._seal = row, seal
        vars(self).update(row.items())

    def __getitem__(self, name: str) -> object:
        """Returns the value of the column."""
        return cast("Any", self._row)[name]

    @cached_property
    def opened_words(self) -> CaseWords:
        """The words of the case, opened."""
        return self._seal.open_case(self._row.id, cast("bytes", self._row.words))

    @property
    def task(self) -> str:
        """The task, opened."""
        return self.opened_words.task

    @property
    def effects(self) -> list[str]:
        """The effects, opened where they are steps of the plan."""
        effects, tokens = vars(self)["effects"], vars(self)["plan"]
        return effects if set(effects).isdisjoint(tokens) else effects_of(effects, tokens, self.opened_words)


class OpenedCase(SealedCase):
    """A row with its task and its plan in words."""

    @property
    def plan(self) -> list[str]:
        """The plan, opened."""
        return self.opened_words.plan


def opened(row: Any) -> Any:  # a row of any statement, or what stands for it here
    """Returns the row with its plan in words; an unsealed row unchanged."""
    return OpenedCase(row._row, row._seal) if isinstance(row, SealedCase) else row  # noqa: SLF001 - its own kind


def as_stored(row: Any) -> Any:  # as above
    """Returns the row as it was read, whose numbers are read faster."""
    return row._row if isinstance(row, SealedCase) else row  # noqa: SLF001 - its own kind


def is_sealed(row: object) -> TypeGuard[SealedRow]:
    """Returns whether the words of the row are sealed; a row without a case has no words."""
    return cast("SealedRow", row).words is not None
