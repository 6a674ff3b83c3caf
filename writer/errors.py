"""The errors of writing to the case bank, without any knowledge of HTTP."""

from retrieval.errors import CasebankError


class ErasureNotConfirmed(CasebankError):
    """The caller confirmed another erasure than the user's last one."""


class IdempotencyConflict(CasebankError):
    """The idempotency key was used before, with another body."""


class KnowledgeExists(CasebankError):
    """Another entry of knowledge has this category, type and title."""


class MemoryOff(CasebankError):
    """The user switched off writing for this agent: nothing is stored."""

    def __init__(self) -> None:
        super().__init__("memory is not written for this agent: nothing was stored")


class NotTheOwner(CasebankError):
    """An operator's command needs to own the tables of the database, and its login does not."""


class NotJoined(CasebankError):
    """The request names a run and a retrieval, and the run began with another retrieval."""


class PathTooLong(CasebankError, ValueError):
    """A path is longer than any path of Linux; a ValueError too, so that validation reports the field of the path."""


class SecretInName(CasebankError):
    """A name, as of an agent, looks like a secret or holds personal data, and would be stored and logged unredacted."""


class SourceNotAllowed(CasebankError):
    """The reward claims to come from a judge or a metric, and the caller is no service."""


class UnknownReference(CasebankError):
    """The run refers to a case that the user does not have, or to a retrieval of another agent."""


class TurnsOutOfOrder(CasebankError):
    """A turn is earlier than the turn before it in its session, or in future; nothing of the request was stored."""


class RunEnded(CasebankError):
    """The run was retained, so it takes no more steps."""


class LeaseLost(CasebankError):
    """The worker's lease on the case ran out, or the case was deleted; the worker must not store its result."""
