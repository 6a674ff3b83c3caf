"""Errors of reading the case bank; they are independent of HTTP."""

from collections.abc import Sequence
from dataclasses import dataclass


class CasebankError(Exception):
    """Base class of every error that casebank raises on purpose."""


class NotFound(CasebankError):
    """Raised if the user has no such case, retrieval, profile or other object."""


class UserErased(CasebankError):
    """Raised if the user was erased after the caller's token was issued.

    Attributes:
        erased_at: time of the erasure by the database's clock, in ISO 8601; None if unknown.
    """

    def __init__(self, message: str, erased_at: str | None = None) -> None:
        super().__init__(message)
        self.erased_at = erased_at


class SealBroken(CasebankError):
    """Raised if sealed bytes were changed or cut, or belong to another user, row or key."""


class DatabaseUnavailable(CasebankError):
    """Raised if Postgres did not answer in time, or the connection broke."""


class Deadlocked(DatabaseUnavailable):
    """Raised if Postgres ended the transaction, which kept no writes, because it and another waited for each other."""


class SchemaOutdated(DatabaseUnavailable):
    """Raised if the database lacks a table, column or function of this version of casebank: it was not migrated."""


class EmbedderError(CasebankError):
    """Raised if no usable vectors came from the embedder."""


class EmbedderUnavailable(EmbedderError):
    """Raised if the embedder gave no answer, or refused for a passing reason; a later try may succeed."""


class EmbedderRefused(EmbedderError):
    """Raised if the embedder refused the content of a text; without that text it may answer."""


class EmbedderMisbehaved(EmbedderError):
    """Raised if the embedder's answer has the wrong count, order, dimension or numbers."""


class TextNotEmbeddable(EmbedderError):
    """Raised if some texts of a batch are blank and so have no vector; embedding the other texts alone succeeds.

    Attributes:
        indices: indices of the blank texts in the batch, rising.
    """

    def __init__(self, indices: Sequence[int]) -> None:
        super().__init__(f"nothing to embed in the texts at {list(indices)}")
        self.indices = tuple(indices)


@dataclass(frozen=True, slots=True)
class Tokens:
    """Cost of a call of a language model: tokens of the prompt and of the completion."""

    prompt: int = 0
    completion: int = 0

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(self.prompt + other.prompt, self.completion + other.completion)


class ModelError(CasebankError):
    """Raised if no usable answer came from the language model.

    Attributes:
        why: reason in one word, for metrics.
    """

    tokens = Tokens()
    why = "failed"


class ModelUnavailable(ModelError):
    """Raised if the language model gave no answer, or its server refused for now; a later try may succeed."""

    why = "unavailable"


class ModelRefused(ModelError):
    """Raised if the language model or its server refused the content of the request."""

    why = "refused"


class ModelMisbehaved(ModelError):
    """Raised if the language model's answer does not have the requested form."""

    why = "misbehaved"


class ModelBudgetSpent(ModelError):
    """Raised if the profile has used up its language model's tokens of the day."""

    why = "over_budget"
