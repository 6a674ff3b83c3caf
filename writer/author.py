"""Who writes, and for whom."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Author:
    """Who writes for whom: the user whose memory it is, who acts, and since when they may."""

    user_sub: str
    actor: str
    authorised_at: datetime
