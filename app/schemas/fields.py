"""Types of fields that several bodies share."""

from typing import Annotated

from pydantic import Field

K = Annotated[int, Field(ge=1, le=50)]
Weight = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False)]
RrfK = Annotated[float, Field(gt=0, le=10_000, allow_inf_nan=False)]
