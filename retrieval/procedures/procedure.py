"""Procedures that may guide a task, and the choice of those shown together."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import NotRequired, TypedDict
from uuid import UUID

from retrieval.procedures.threshold import Threshold
from retrieval.sections.procedures import Guidance
from retrieval.tables.kinds import ProcedureKind, QueryKind
from retrieval.text import folded, without_example

FEWEST = 2
"""Least number of different procedures that make the parts of a task count."""
ROUNDING = 1e-6
"""Difference of two similarities that may come from rounding."""


class ProcedureRecord(TypedDict):
    """The record of a procedure as JSON, as far as a retrieval reads it; ``writer.run`` has all of its fields."""

    procedure_name: str
    semantic_description: str
    learned_procedure_steps: list[str]
    identified_root_cause: NotRequired[str]
    plan: NotRequired[list[str]]


@dataclass(frozen=True, slots=True)
class Procedure:
    """The active version of a procedure.

    Attributes:
        similarity: cosine of trigger and text; None if words alone found it.
        names_tools: true if the text's words all stand in names of its tools.
        level: abstraction of a script; None for a fix or a failure lesson.
        reported: true if a backend sent it with its run, unchecked against the calls.
        uses: rewarded decisions that showed it, shared among all shown if no use was reported.
        sources: runs that it was learned from.
        pinned: true if a person said that nothing replaces it.
        proven_runs: number of the sources that are proven.
        alternative_to: better procedure shown beside it, with the same trigger and other steps.
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
    pinned: bool = False
    proven_runs: int = 0
    alternative_to: UUID | None = None
    names_tools: bool = False

    @property
    def steps(self) -> list[str]:
        """Steps of the procedure, in the order in which an agent does them."""
        return self.record["learned_procedure_steps"]

    @property
    def cause(self) -> str:
        """Reason for the steps; empty if no call failed."""
        return self.record.get("identified_root_cause", "")

    @property
    def is_fix(self) -> bool:
        """True if it says how a failure was put right."""
        return self.level is None and not self.warns

    @property
    def is_proven(self) -> bool:
        """True if others than its runs stand for it: a person pinned it, or a later reward proved a run."""
        return self.pinned or self.proven_runs > 0

    @property
    def worth(self) -> float:
        """Similarity times the reward of its uses; a new procedure counts like one that helped in 4 of 5."""
        return (1.0 if self.similarity is None else self.similarity) * (4 + self.use_reward) / (5 + self.uses)

    @property
    def procedure_name(self) -> str:
        """Name of the procedure."""
        return self.record["procedure_name"]

    @property
    def plan(self) -> list[str]:
        """Plan that the backend gave beside the calls that are the steps; empty without one."""
        return self.record.get("plan", [])

    def guidance(self, shown: Collection[UUID] = ()) -> Guidance:
        """Returns the fields that a context quotes; without the plan if one of its runs is a ``shown`` case."""
        plan = self.plan if self.sources.isdisjoint(shown) else []
        return Guidance(self.trigger, self.steps, self.cause, self.kind, reported=self.reported, plan=plan)

    @property
    def why(self) -> str:
        """One line with the match that found it, and its record."""
        match = "its words match" if self.similarity is None else f"trigger similarity {self.similarity:.2f}"
        named = "; the query names its tools" if self.names_tools else ""
        used = f"; {self.use_reward:.1f} of {self.uses:.1f} uses rewarded" if self.uses else "; never used yet"
        count = self.proven_runs or self.occurrences
        runs = f"; {count} runs say so" if count > 1 else ""
        other = "; another way than a better procedure with this trigger" if self.alternative_to else ""
        return f"{match}{named}{used}{runs}{other}{'; a warning: this was never put right' if self.warns else ''}"


@dataclass(frozen=True, slots=True)
class ProcedureMatches:
    """Procedures for a task, best first, and the threshold that they reached."""

    matches: Sequence[Procedure] = ()
    threshold: Threshold | None = None
    """Threshold of the procedures; None if the profile has no procedures, or shows none."""
    of_parts: Sequence[Sequence[Procedure]] = ()
    """Procedures for each part of a task of several parts, in the parts' order; empty for a task of one."""

    def __bool__(self) -> bool:
        """Returns whether there is a procedure."""
        return bool(self.matches) or any(self.of_parts)


def compose_procedures(
    found: ProcedureMatches, most: int, *, warnings: int, quarantine: bool = False
) -> list[Procedure]:
    """Returns at most ``most`` procedures to show together: those of the task's parts, then the best of the others.

    The parts count where the best procedures of FEWEST or more of them differ, unless another procedure is as near to
    the task as a whole; or where nothing is near the task as a whole.
    """
    plain = _together(found.matches, most, warnings=warnings, quarantine=quarantine)
    of_parts = [_together(matches, 1, warnings=0, quarantine=quarantine) for matches in found.of_parts]
    firsts = {each.id: each for best in of_parts for each in best}
    if plain:
        whole = [plain[0].similarity or 0.0] if plain[0].id not in firsts else []
        nearer = any((each.similarity or 0.0) <= least + ROUNDING for each in firsts.values() for least in whole)
        if len(firsts) < FEWEST or nearer:
            return plain
    sources = frozenset(source for each in firsts.values() for source in each.sources)
    others = [each for each in plain if each.id not in firsts and each.sources.isdisjoint(sources)]
    return as_alternatives([*firsts.values(), *others][:most])


def _together(matches: Sequence[Procedure], most: int, *, warnings: int, quarantine: bool) -> list[Procedure]:
    """Returns procedures for one text, at most ``most``, best first.

    Unproven ones wait in quarantine, and where a proven run taught one that matches. Of procedures from one run or with
    equal steps, one stays: the fix, which says why, or else the better one. There are at most ``warnings`` failure
    lessons.
    """
    shown: list[Procedure] = []
    if quarantine or any(each.proven_runs for each in matches):
        matches = [each for each in matches if each.is_proven]
    fixes = frozenset(source for each in matches if each.is_fix for source in each.sources)
    candidates = [each for each in matches if each.is_fix or each.sources.isdisjoint(fixes)]
    for each in sorted(candidates, key=lambda procedure: -procedure.worth):
        crowded = each.warns and sum(other.warns for other in shown) >= warnings
        steps = [*map(folded, each.steps)]
        repeats = any(each.sources & other.sources or steps == [*map(folded, other.steps)] for other in shown)
        if len(shown) < most and not crowded and not repeats:
            shown.append(each)
    return as_alternatives(shown)


def as_alternatives(shown: Sequence[Procedure]) -> list[Procedure]:
    """Returns the procedures; the second and later ones of a trigger are alternatives to the first, warnings aside."""
    first: dict[str, UUID] = {}
    for each in shown:
        if not each.warns:
            first.setdefault(without_example(each.trigger), each.id)
    better = [None if each.warns else first[without_example(each.trigger)] for each in shown]
    return [
        each if other in {None, each.id} else replace(each, alternative_to=other)
        for each, other in zip(shown, better, strict=True)
    ]
