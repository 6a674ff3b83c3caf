"""The rows that a retrieval read, before they are ranked."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from uuid import UUID

from retrieval.procedures.found import ProceduresFound
from retrieval.recall.memory import Recalled
from retrieval.search.candidates import BankRow, Candidate, is_candidate
from retrieval.search.profile_settings import ProfileSettings
from retrieval.sections.context import Section


@dataclass(frozen=True)
class SearchResult:
    """The rows of the candidates' statement, what was missing when they were searched for, and the procedures."""

    rows: Sequence[BankRow]
    degraded: list[str]
    procedures: ProceduresFound = field(default_factory=ProceduresFound)
    unrelated: frozenset[UUID] = frozenset()
    """Of the candidates, those that have nothing to do with the query."""
    wanted: bool = True
    """Whether the request wants to be told anything."""
    quotes: Sequence[Section] = ()
    """The sections of the session and of the user's facts."""
    recalled: Recalled | None = None
    """What was found of turns, facts and knowledge; None where that was not asked for, or memory is off."""

    @property
    def settings(self) -> ProfileSettings | None:
        """The profile's settings; None where there is no such profile."""
        return self.rows[0] if self.rows else None

    @property
    def is_off(self) -> bool:
        """Whether memory is off, for the request or the profile."""
        return not self.wanted or bool(self.rows and not self.rows[0].enabled)

    @cached_property
    def candidates(self) -> list[Candidate]:
        """What was found; nothing of a profile without cases, or where memory is off."""
        return [] if self.is_off else [row for row in self.rows if is_candidate(row)]

    @cached_property
    def cases(self) -> list[Candidate]:
        """The candidates that may be told: those that have to do with the query."""
        return [row for row in self.candidates if row.id not in self.unrelated]
