"""Types of statements, rows and expressions that SQLAlchemy's annotations cannot describe, each with its reason."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Row, Select

Rows = Select[*tuple[Any, ...]]
"""A statement that returns rows of any columns.

SQLAlchemy types a statement by the tuple of its columns' types, up to ten of them. For columns that are looked up by
name, and for more than ten, the types are not known, and Any is the only possible annotation.
"""

AnyRow = Row[*tuple[Any, ...]]
"""A row of a statement of the type Rows."""

Expression = ColumnElement[Any]
"""An SQL expression whose type has no single type in Python, such as a vector, an array, or one of several types."""

_FIRST = 6
"""Index of the first element among the integers that Postgres sends for an array: behind a header and its length."""


def integers(sent: bytes) -> NDArray[np.int32]:
    """Returns the elements of an integer array, (n,), from the bytes that Postgres's ``array_send`` made of it.

    Args:
        sent: bytes of an array of one dimension without NULL, in which each element follows its length.
    """
    return np.frombuffer(sent, dtype=">i4")[_FIRST::2].astype(np.int32)
