"""The rows that a retrieval read, before they are ranked."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from uuid import UUID

from retrieval.procedures.procedure import ProcedureMatches
from retrieval.procedures.threshold import Threshold
from retrieval.recall.memory import Recalled
from retrieval.search.candidates import BankRow, Candidate, is_candidate
from retrieval.search.profile_settings import ProfileSettings
from retrieval.sections.context import Section


@dataclass(frozen=True)
class SearchResult:
    """The rows of the candidates' statement, the parts that were down, and the other rows that an answer needs."""

    rows: Sequence[BankRow]
    degraded: list[str]
    procedures: ProcedureMatches = field(default_factory=ProcedureMatches)
    threshold: Threshold = field(default_factory=Threshold)
    """Least similarity of a text that asks for the same as the query."""
    unrelated: frozenset[UUID] = frozenset()
    """Candidates that are unrelated to the query."""
    wanted: bool = True
    """False if the request asked for no memory."""
    quotes: Sequence[Section] = ()
    """The sections of the session and of the user's facts."""
    recalled: Recalled | None = None
    """Recalled turns, facts and knowledge; None if not requested, or if memory is off."""

    @property
    def settings(self) -> ProfileSettings | None:
        """The profile's settings; None if there is no such profile."""
        return self.rows[0] if self.rows else None

    @property
    def is_off(self) -> bool:
        """True if memory is off, for the request or the profile."""
        return not self.wanted or bool(self.rows and not self.rows[0].enabled)

    @cached_property
    def candidates(self) -> list[Candidate]:
        """The candidates; empty for a profile without cases, or if memory is off."""
        return [] if self.is_off else [row for row in self.rows if is_candidate(row)]

    @cached_property
    def cases(self) -> list[Candidate]:
        """The candidates that are related to the query."""
        return [row for row in self.candidates if row.id not in self.unrelated]
