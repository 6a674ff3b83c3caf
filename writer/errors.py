"""The errors of writing to the case bank, without any knowledge of HTTP.

CasebankError
├── ErasureNotConfirmed   the erasure that the caller confirms is not the user's last one
├── IdempotencyConflict   the idempotency key was used before, with another body
├── KnowledgeExists       an edited entry of knowledge would equal another one
├── MemoryOff             the user switched off writing for this agent: nothing is stored
├── NotTheOwner           the login of an operator's command does not own the tables
├── NotJoined             a run and a retrieval are named together, and the run began with another retrieval
├── LeaseLost             the worker was too slow: another worker has the case, or the case was deleted
├── PathTooLong           a path in a step, or in a question, is longer than that of any file
├── RunEnded              the run was retained: it takes no more steps
├── SecretInName          a name, as of an agent, looks like a secret
├── SourceNotAllowed      the author may not give rewards of this source
├── TurnsOutOfOrder       a turn is earlier than the turn before it, or in future
└── UnknownReference      the run names a row that the user does not have, or another agent's retrieval
"""

from retrieval.errors import CasebankError


class ErasureNotConfirmed(CasebankError):
    """The erasure that the caller confirms is not the user's last."""


class IdempotencyConflict(CasebankError):
    """The idempotency key was used before, with another body."""


class KnowledgeExists(CasebankError):
    """Another entry of knowledge has this category, type and title."""


class MemoryOff(CasebankError):
    """The user switched off writing for this agent: nothing is stored."""

    def __init__(self) -> None:
        super().__init__("memory is not written for this agent: nothing was stored")


class NotTheOwner(CasebankError):
    """The login of the database does not own its tables, and an operator's command needs to."""


class NotJoined(CasebankError):
    """A run and a retrieval were named together, and the run did not begin with that retrieval."""


class PathTooLong(CasebankError, ValueError):
    """The path is longer than that of any file; a ValueError too, so that validation reports it as a wrong field."""


class SecretInName(CasebankError):
    """The name looks like a secret or holds personal data, and would be stored and logged as it is."""


class SourceNotAllowed(CasebankError):
    """The reward claims to come from a judge or a metric, and the caller is no service."""


class UnknownReference(CasebankError):
    """The run refers to a case that the user does not have, or to a retrieval of another agent."""


class TurnsOutOfOrder(CasebankError):
    """A turn is earlier than the one before it in its session, or in future; none of the call was kept."""


class RunEnded(CasebankError):
    """The run is no longer under way: its steps are in its case."""


class LeaseLost(CasebankError):
    """The case is no longer this worker's: the lease ran out, or the case is gone."""
