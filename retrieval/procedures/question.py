"""A request for procedures, and its answer."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from retrieval.pages.procedures import Measures
from retrieval.procedures.procedure import Procedure
from retrieval.procedures.threshold import Threshold
from retrieval.search.candidates import Filters


@dataclass(frozen=True, slots=True)
class ProcedureQuestion:
    """A request for at most ``limit`` procedures of one profile; a condition of None allows all procedures.

    Attributes:
        text: text to compare with the procedures' triggers; None: only the other conditions decide.
        least: least similarity of trigger and text; None: the profile's, or else the embedding model's.
    """

    agent_key: str
    text: str | None
    task_type: str | None = None
    domain: str | None = None
    measures: Measures = field(default_factory=Measures)
    filters: Filters = field(default_factory=Filters)
    least: float | None = None
    limit: int = 10


@dataclass(frozen=True, slots=True)
class ProcedureAnswer:
    """The answer to a request for procedures.

    Attributes:
        threshold: least similarity that they had to reach.
        degraded: names of the parts of the search that failed.
    """

    procedures: Sequence[Procedure]
    threshold: Threshold
    degraded: list[str]
