"""The rows that a retrieval read from the database, before they are ranked."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from uuid import UUID

from retrieval.procedures.procedure import ProcedureMatches
from retrieval.procedures.threshold import Threshold
from retrieval.recall.memory import Recalled
from retrieval.sealed import UserSeal
from retrieval.search.candidates import Candidate
from retrieval.search.profile_settings import ProfileSettings
from retrieval.search.unrelated import Floor
from retrieval.sections.quotes import QuotingSection


@dataclass(frozen=True)
class SearchResult:
    """The rows that were read for a request for memory.

    Attributes:
        settings: the profile's settings; None if there is no such profile yet.
        found: the cases found; empty if memory is off.
        degraded: names of the parts of the search that failed.
    """

    settings: ProfileSettings | None
    found: Sequence[Candidate]
    degraded: list[str]
    is_off: bool = False
    """True if memory is switched off, for the request or the profile."""
    procedures: ProcedureMatches = field(default_factory=ProcedureMatches)
    threshold: Threshold = field(default_factory=Threshold)
    """Least similarity of the query and a procedure's trigger, or a run that taught it."""
    floor: Floor | None = None
    """Least similarities at which a text counts as related to the query; None: the embedding model was not measured."""
    unrelated: frozenset[UUID] = frozenset()
    """Ids of the cases found that are unrelated to the query."""
    seal: UserSeal | None = None
    """Seal that opens the cases' texts; None if no case is sealed."""
    quotes: Sequence[QuotingSection] = ()
    """Sections of the context that quote the session and the facts about the user."""
    recalled: Recalled | None = None
    """Recalled turns, facts and knowledge; None if not requested, or if memory is off."""
    unreadable: frozenset[UUID] = frozenset()
    """Ids of the cases found that do not decrypt."""

    @cached_property
    def cases(self) -> list[Candidate]:
        """Those of the cases found that are related to the query and, as far as is known, decrypt."""
        return [row for row in self.found if row.id not in self.unrelated | self.unreadable]
