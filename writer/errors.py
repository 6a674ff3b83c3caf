"""What can go wrong when writing to the case bank; nothing here knows of HTTP.

CasebankError
├── IdempotencyConflict   the key came before, with another body
└── LeaseLost             the worker was too slow: the case went to another worker, or away
"""

from retrieval.errors import CasebankError


class IdempotencyConflict(CasebankError):
    """The idempotency key was used before, with another body."""


class LeaseLost(CasebankError):
    """The case is no longer this worker's: the lease ran out, or the case is gone."""
