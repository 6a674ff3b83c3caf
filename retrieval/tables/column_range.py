"""Ranges of columns: a check for the fields of bodies that are stored in them."""

import math
import struct

from pydantic import AfterValidator
from sqlalchemy import REAL, Column, SmallInteger

SMALLINT, INTEGER = 2**15 - 1, 2**31 - 1
"""The largest numbers of these columns."""


def fits(column: Column[object]) -> AfterValidator:
    """Returns the check that a number fits the column: a ``real`` neither over- nor underflows, an integer is in range.

    Its ValueError says how the number fails; pydantic makes a refusal of it.
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
