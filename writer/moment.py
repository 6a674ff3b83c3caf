"""A moment, as requests and files name one."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime

FIRST_YEAR = 2
"""There is room before it: what counts some days back from a moment needs a date, too."""


def _datable(moment: datetime) -> datetime:
    """Returns the moment, if it has a date in UTC, which it is kept in."""
    try:
        year = moment.astimezone(UTC).year
    except OverflowError:
        year = None
    if year is None or year < FIRST_YEAR:
        raise ValueError(f"must lie within the years {FIRST_YEAR} and 9999 in UTC")
    return moment


Moment = Annotated[AwareDatetime, AfterValidator(_datable)]
"""A time with an offset or a zone, whose date exists in UTC."""
