"""Field types that several request and response bodies share."""

from typing import Annotated

import numpy as np
from pydantic import AfterValidator, Field

from retrieval.tables.columns import fits
from retrieval.tables.procedures import procedures
from retrieval.tables.profiles import profiles
from writer.privacy.redact import redact, without_secrets
from writer.run import Tag, TaskText, ToolName
from writer.storable import Payload

SearchText = Annotated[TaskText, AfterValidator(without_secrets)]
"""A search query, redacted so that no secret reaches the embedder or a log.

Redaction is part of validation, because long texts are validated in a worker thread.
"""
CleanTag = Annotated[Tag, AfterValidator(without_secrets)]
CleanToolName = Annotated[ToolName, AfterValidator(without_secrets)]
RedactedJson = Annotated[Payload, AfterValidator(lambda value: redact(value)[0])]
"""Any JSON, redacted: it is compared with stored values, which are redacted too."""

K = Annotated[int, Field(ge=1, le=50), fits(profiles.c.k)]
Weight = Annotated[float, Field(ge=0, le=1000, allow_inf_nan=False), fits(profiles.c.full_text_weight)]
RrfK = Annotated[float, Field(gt=0, le=10_000, allow_inf_nan=False), fits(profiles.c.rrf_k)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), fits(profiles.c.explore)]
Similarity = Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False), fits(profiles.c.procedure_similarity)]
Milliseconds = Annotated[float, Field(ge=0, allow_inf_nan=False), fits(procedures.c.duration_ms)]
Tokens = Annotated[int, Field(ge=0), fits(profiles.c.llm_tokens_per_day)]


Real = Annotated[float, AfterValidator(lambda number: float(str(np.float32(number))))]
"""A number from a four-byte column as the shortest decimal of its value: 0.05 instead of 0.05000000074505806."""
