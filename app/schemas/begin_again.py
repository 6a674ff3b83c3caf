"""The bodies about beginning again for a user who was erased."""

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from writer.moment import Moment


class BeginAgainIn(BaseModel):
    """Which erasure the caller knows of."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"erased_at": "2026-11-22T08:00:00.123456+00:00"}]}
    )

    erased_at: Moment = Field(description="as the 410 told it: the caller knows that the memory is gone")


class BeginAgainOut(BaseModel):
    """Since when the caller's tokens are good for this user again."""

    erased_at: datetime
    begun_at: datetime
