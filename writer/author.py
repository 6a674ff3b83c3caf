"""The author of a change: a user, or a service for a user."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from retrieval.tables.kinds import RewardSource
from writer.audit import Change
from writer.errors import SourceNotAllowed

OF_SERVICES: frozenset[str] = frozenset({"judge", "metric"})
"""Reward sources that only a service may claim; a user's own token may claim the others."""


@dataclass(frozen=True, slots=True)
class Author:
    """A caller who may change a user's memory.

    Attributes:
        actor: the user or the service that changes it, as the audit names it.
        authorised_at: earliest time at which the caller's token may have been issued.
        is_service: true if the caller is a service that acts for the user.
    """

    user_sub: str
    actor: str
    authorised_at: datetime
    is_service: bool = False

    def change(self, agent_key: str | None, action: str, subject_id: UUID | None = None, **payload: object) -> Change:
        """Returns a change that the author made of an agent's data, or (None) of all of the user's, for the audit."""
        return Change((self.user_sub, agent_key), self.actor, action, subject_id, payload)

    def claim(self, source: RewardSource | None) -> None:
        """Checks that the author may give rewards of this source; called before a reward is stored.

        Raises:
            SourceNotAllowed: only a service may give rewards of this source, and the author is a user.
        """
        if source in OF_SERVICES and not self.is_service:
            raise SourceNotAllowed(
                f"a reward of the source {source} needs a service's token (scope casebank:act-as); a user's own may say"
                " user or heuristic"
            )
