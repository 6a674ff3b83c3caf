"""The rows that a retrieval read from the database, before they are ranked."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from uuid import UUID

from retrieval.procedures.procedure import ProcedureMatches
from retrieval.procedures.threshold import Threshold
from retrieval.recall.memory import Recalled
from retrieval.sealed import UserSeal
from retrieval.search.candidates import BankRow, Candidate, is_candidate
from retrieval.search.profile_settings import ProfileSettings
from retrieval.search.unrelated import Floor
from retrieval.sections.quotes import QuotingSection


@dataclass(frozen=True)
class SearchResult:
    """The rows that were read for a request for memory.

    Attributes:
        rows: rows of the search for candidates, each with the profile's settings.
        degraded: names of the parts of the search that failed.
    """

    rows: Sequence[BankRow]
    degraded: list[str]
    procedures: ProcedureMatches = field(default_factory=ProcedureMatches)
    threshold: Threshold = field(default_factory=Threshold)
    """Least similarity of the query and a procedure's trigger, or a run that taught it."""
    floor: Floor | None = None
    """Least similarities at which a text counts as related to the query; None: the embedding model was not measured."""
    unrelated: frozenset[UUID] = frozenset()
    """Ids of the cases found that are unrelated to the query."""
    seal: UserSeal | None = None
    """Seal that opens the cases' texts; None if no case is sealed."""
    wanted: bool = True
    """False if the request switched memory off."""
    quotes: Sequence[QuotingSection] = ()
    """Sections of the context that quote the session and the facts about the user."""
    recalled: Recalled | None = None
    """Recalled turns, facts and knowledge; None if not requested, or if memory is off."""
    unreadable: frozenset[UUID] = frozenset()
    """Ids of the cases found that do not decrypt."""

    @property
    def settings(self) -> ProfileSettings | None:
        """The profile's settings; None if there is no such profile yet."""
        return self.rows[0] if self.rows else None

    @property
    def is_off(self) -> bool:
        """True if memory is switched off, for the request or the profile."""
        return not self.wanted or bool(self.rows and not self.rows[0].enabled)

    @cached_property
    def candidates(self) -> list[Candidate]:
        """The cases found; empty for a profile without cases, or if memory is off."""
        return [] if self.is_off else [row for row in self.rows if is_candidate(row)]

    @cached_property
    def cases(self) -> list[Candidate]:
        """Those of the cases found that are related to the query and, as far as is known, decrypt."""
        return [row for row in self.candidates if row.id not in self.unrelated | self.unreadable]
