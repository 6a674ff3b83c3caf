"""Checks that a number in a request's body fits the column in which it is stored."""

import math
import struct

from pydantic import AfterValidator
from sqlalchemy import REAL, Column, SmallInteger

SMALLINT, INTEGER = 2**15 - 1, 2**31 - 1
"""Largest numbers that columns of these types hold."""


def fits(column: Column[object]) -> AfterValidator:
    """Returns a pydantic check that a number fits the column's range, without over- or underflow of a ``real``.

    The check raises a ValueError that says how the number fails, which pydantic reports to the caller.
    """

    def real(number: float) -> float:  # four bytes hold magnitudes from about 1e-45 to 3.4e38, and zero
        try:
            (stored,) = struct.unpack("f", struct.pack("f", number))
        except OverflowError:
            stored = math.inf
        if math.isinf(stored) or (stored == 0 and number != 0):
            raise ValueError("must be 0 or of a magnitude from 1e-45 to 3.4e38")
        return number

    largest = SMALLINT if isinstance(column.type, SmallInteger) else INTEGER

    def whole(number: int) -> int:
        if not -largest <= number <= largest:
            raise ValueError(f"must lie within -{largest} and {largest}")
        return number

    return AfterValidator(real if isinstance(column.type, REAL) else whole)
