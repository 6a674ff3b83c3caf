"""Types of fields that several bodies share."""

from typing import Annotated

from pydantic import Field

from retrieval.column_range import fits
from retrieval.schema import profiles

K = Annotated[int, Field(ge=1, le=50), fits(profiles.c.k)]
Weight = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False), fits(profiles.c.full_text_weight)]
RrfK = Annotated[float, Field(gt=0, le=10_000, allow_inf_nan=False), fits(profiles.c.rrf_k)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), fits(profiles.c.explore)]
Similarity = Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False), fits(profiles.c.procedure_similarity)]
Tokens = Annotated[int, Field(ge=0), fits(profiles.c.llm_tokens_per_day)]
