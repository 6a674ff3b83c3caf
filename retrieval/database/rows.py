"""The types of statements, rows and expressions that SQLAlchemy cannot know more of, each with its reason, once."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import ColumnElement, Row, Select

Rows = Select[*tuple[Any, ...]]
"""A statement for rows. SQLAlchemy types a statement by the tuple of its columns' types, up to ten of them; of columns
that are looked up by name, or are more than that, the types are not known, and Any is all that its annotation takes.
"""

AnyRow = Row[*tuple[Any, ...]]
"""A row of such a statement; for the same reason."""

Expression = ColumnElement[Any]
"""An expression of a type that has no one type in Python, such as a vector or an array, or one of several types."""

_FIRST = 6
"""Place of the first element in the bytes of an array of one dimension, in integers: behind a header and its length."""


def integers(sent: bytes) -> NDArray[np.int32]:
    """Returns the elements of an integer array, (n,), from the bytes of ``array_send``, where each follows its length.

    Args:
        sent: an array of one dimension without NULL.
    """
    return np.frombuffer(sent, dtype=">i4")[_FIRST::2].astype(np.int32)
