"""A lease: the right of one worker to work on a row of a queue for a time."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import ColumnElement, Table, and_


@dataclass(frozen=True, slots=True)
class Lease:
    """A row of a queue that is this worker's until the lease ends.

    Attributes:
        attempts: number of times that the row was leased, this time included.
        claimed_at: beginning of the lease, by the database's clock; if the user is erased later, the worker can store
            nothing.
    """

    user_sub: str
    row_id: UUID
    agent_key: str
    attempts: int
    lease_token: UUID
    claimed_at: datetime


def is_held(queue: Table, lease: Lease) -> ColumnElement[bool]:
    """Returns the SQL condition that is true for the leased row while the worker still holds the lease."""
    return and_(
        queue.c.user_sub == lease.user_sub,
        queue.c.id == lease.row_id,
        queue.c.lease_token == lease.lease_token,
        queue.c.status == "pending",
    )
