"""Bodies of the restart of an erased user's memory."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from writer.moment import Moment


class BeginAgainIn(BaseModel):
    """The erasure that the caller confirms."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"erased_at": "2026-11-22T08:00:00.123456+00:00"}]}
    )

    erased_at: Moment = Field(
        description="time of the erasure as the 410 response gave it; it confirms that the caller knows of the erasure"
    )


class BeginAgainOut(BaseModel):
    """The confirmed erasure, and the time from which tokens are accepted for this user again."""

    erased_at: datetime
    begun_at: datetime
