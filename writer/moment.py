"""The type of a point in time in requests and files."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime

FIRST_YEAR = 2
"""Earliest year of a moment; a date some days before the moment can still be computed."""
LAST = datetime.max.replace(microsecond=999_998, tzinfo=UTC)
"""Latest moment: a microsecond later the driver would store infinity, and read it as a time without a zone."""


def _datable(moment: datetime) -> datetime:
    """Returns the moment, at most LAST, if it has a date in UTC, the zone in which it is stored.

    Raises:
        ValueError: its date in UTC is out of range.
    """
    try:
        year = moment.astimezone(UTC).year
    except OverflowError:
        year = None
    if year is None or year < FIRST_YEAR:
        raise ValueError(f"must lie within the years {FIRST_YEAR} and 9999 in UTC")
    return min(moment, LAST)


Moment = Annotated[AwareDatetime, AfterValidator(_datable)]
"""A time with an offset or a zone, whose date exists in UTC."""
