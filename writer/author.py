"""Who writes, and for whom."""

from dataclasses import dataclass
from datetime import datetime

from retrieval.tables.kinds import RewardSource
from writer.errors import SourceNotAllowed

OF_SERVICES: frozenset[str] = frozenset({"judge", "metric"})
"""The sources of rewards that only a service may claim: whoever holds a user's own token speaks for that user alone."""


@dataclass(frozen=True, slots=True)
class Author:
    """Who writes for whom: the user whose memory it is, who acts, since when they may, and whether as a service."""

    user_sub: str
    actor: str
    authorised_at: datetime
    is_service: bool = False

    def claim(self, source: RewardSource | None) -> None:
        """Lets through a reward of a source that the author may speak for.

        Raises:
            SourceNotAllowed: only a service may.
        """
        if source in OF_SERVICES and not self.is_service:
            raise SourceNotAllowed(
                f"a reward of the source {source} needs a service's token (scope casebank:act-as); a user's own may say"
                " user or heuristic"
            )
