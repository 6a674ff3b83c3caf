"""The errors of writing to the case bank, without any knowledge of HTTP.

CasebankError
├── ErasureNotConfirmed   the erasure that the caller confirms is not the user's last
├── IdempotencyConflict   the key came before, with another body
├── KnowledgeExists       an edited entry of knowledge would be the same as another one
├── NotTheOwner           the login of an operator's command does not own the tables
├── NotJoined             the run did not begin with the retrieval that is named beside it
├── LeaseLost             the worker was too slow: the case went to another worker, or away
├── PathTooLong           a path in a step, or in a question, is longer than that of any file
├── RunEnded              the run was retained: it takes no more steps
├── SecretInName          what should name an agent looks like a secret
├── SourceNotAllowed      a reward claims a source that its author may not speak for
├── TurnsOutOfOrder       a turn is earlier than the one before it, or in future
└── UnknownReference      the run refers to what the user does not have, or to another agent's retrieval
"""

from retrieval.errors import CasebankError


class ErasureNotConfirmed(CasebankError):
    """The erasure that the caller confirms is not the user's last."""


class IdempotencyConflict(CasebankError):
    """The idempotency key was used before, with another body."""


class KnowledgeExists(CasebankError):
    """Another entry of knowledge has this category, type and title."""


class NotTheOwner(CasebankError):
    """The login of the database does not own its tables, and an operator's command needs to."""


class NotJoined(CasebankError):
    """A run and a retrieval were named together, and the run did not begin with that retrieval."""


class PathTooLong(CasebankError, ValueError):
    """The path is longer than that of any file; whoever validates a body takes it for what is wrong with that."""


class SecretInName(CasebankError):
    """The name looks like a secret or holds personal data, and would be stored and logged as it is."""


class SourceNotAllowed(CasebankError):
    """The reward claims to come from a judge or a metric, and the caller is no service."""


class UnknownReference(CasebankError):
    """The run refers to a case that the user does not have, or to a retrieval of another agent."""


class TurnsOutOfOrder(CasebankError):
    """A turn is earlier than the one before it in its session, or in future; none of the call was kept."""


class RunEnded(CasebankError):
    """The run is not under way any more: what it did is in its case."""


class LeaseLost(CasebankError):
    """The case is no longer this worker's: the lease ran out, or the case is gone."""
