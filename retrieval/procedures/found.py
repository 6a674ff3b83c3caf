"""The procedures that may guide a task, and which of them are shown together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NotRequired, TypedDict
from uuid import UUID

from retrieval.procedures.threshold import Threshold
from retrieval.sections.procedures import Guidance
from retrieval.tables.kinds import ProcedureKind, QueryKind
from retrieval.text import folded, without_example


class ProcedureRecord(TypedDict):
    """The record of a procedure as JSON, as far as a retrieval reads it; ``writer.run`` has all of its fields."""

    procedure_name: str
    semantic_description: str
    learned_procedure_steps: list[str]
    identified_root_cause: NotRequired[str]


@dataclass(frozen=True, slots=True)
class Procedure:
    """The active version of a procedure, as it was found.

    Attributes:
        similarity: cosine of trigger and text; None where words alone found it.
        level: None of what was learned from a failure.
        reported: whether a backend brought it with its run, and nobody checked it against the calls.
        uses: how many rewarded decisions showed it, shared with those shown beside it where nobody said which helped.
        sources: the runs that say this.
        alternative_to: the better one shown beside it that has the same trigger, and other steps.
    """

    id: UUID
    version: int
    kind: ProcedureKind
    level: str | None
    task_type: str
    trigger: str
    domain: str
    record: ProcedureRecord
    similarity: float | None
    uses: float
    use_reward: float
    occurrences: int
    warns: bool
    query_kind: QueryKind | None = None
    success_score: float | None = None
    duration_ms: float | None = None
    reported: bool = False
    sources: frozenset[UUID] = frozenset()
    alternative_to: UUID | None = None

    @property
    def steps(self) -> list[str]:
        """Returns what to do, in order."""
        return self.record["learned_procedure_steps"]

    @property
    def cause(self) -> str:
        """Returns why it is done so; empty where nothing failed."""
        return self.record.get("identified_root_cause", "")

    @property
    def is_fix(self) -> bool:
        """Returns whether it says how a failure was put right."""
        return self.level is None and not self.warns

    @property
    def worth(self) -> float:
        """Returns how near it is, times what came of its uses; a new one is trusted like one that helped 4 of 5."""
        return (1.0 if self.similarity is None else self.similarity) * (4 + self.use_reward) / (5 + self.uses)

    @property
    def procedure_name(self) -> str:
        """Returns its name."""
        return self.record["procedure_name"]

    @property
    def guidance(self) -> Guidance:
        """Returns what a context says of it."""
        return Guidance(self.trigger, self.steps, self.cause, self.kind, reported=self.reported)

    @property
    def why(self) -> str:
        """Returns in one line what found it, and its record."""
        found = "its words match" if self.similarity is None else f"trigger similarity {self.similarity:.2f}"
        used = f"; {self.use_reward:.1f} of {self.uses:.1f} uses rewarded" if self.uses else "; never used yet"
        runs = f"; {self.occurrences} runs say so" if self.occurrences > 1 else ""
        other = "; another way than a better procedure with this trigger" if self.alternative_to else ""
        return f"{found}{used}{runs}{other}{'; a warning: this was never put right' if self.warns else ''}"


@dataclass(frozen=True, slots=True)
class ProceduresFound:
    """What was found for a task, the best first, and from which similarity on."""

    found: Sequence[Procedure] = ()
    threshold: Threshold | None = None
    """None where nobody looked: the profile has no procedures, or does not want them shown."""


def compose_procedures(found: Sequence[Procedure], most: int, *, warnings: int) -> list[Procedure]:
    """Returns what to show together, at most ``most``, the best first.

    No two say the same, as those do that come from one run or have equal steps: the fix stands, which says why, or
    else the better one. Of failure lessons there are at most ``warnings``.
    """
    shown: list[Procedure] = []
    fixes = frozenset(source for each in found if each.is_fix for source in each.sources)
    found = [each for each in found if each.is_fix or each.sources.isdisjoint(fixes)]
    for each in sorted(found, key=lambda procedure: -procedure.worth):
        crowded = each.warns and sum(other.warns for other in shown) >= warnings
        if len(shown) < most and not crowded and not any(_say_the_same(each, other) for other in shown):
            shown.append(each)
    return as_alternatives(shown)


def as_alternatives(shown: Sequence[Procedure]) -> list[Procedure]:
    """Returns the procedures, each of those with one trigger as an alternative to the first; a warning is none."""
    first: dict[str, UUID] = {}
    for each in shown:
        if not each.warns:
            first.setdefault(without_example(each.trigger), each.id)
    better = [None if each.warns else first[without_example(each.trigger)] for each in shown]
    return [
        each if other in {None, each.id} else replace(each, alternative_to=other)
        for each, other in zip(shown, better, strict=True)
    ]


def _say_the_same(one: Procedure, other: Procedure) -> bool:
    return bool(one.sources & other.sources) or [*map(folded, one.steps)] == [*map(folded, other.steps)]
