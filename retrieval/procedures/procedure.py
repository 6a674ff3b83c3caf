"""Procedures that may guide an agent in a task, and the choice of procedures to show together."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NotRequired, TypedDict
from uuid import UUID

import re2

from retrieval.procedures.threshold import Threshold
from retrieval.sections.cases import tool_called
from retrieval.sections.procedures import Guidance
from retrieval.tables.kinds import ProcedureKind, ProcedureOrigin
from retrieval.text import folded, without_example

FEWEST = 2
"""Least number of different procedures for the parts of a task with which the parts are answered one by one."""
NEARLY = 0.9
"""Least similarity of a part's procedure to the part, as a share of the best procedure's similarity to the task."""
ROUNDING = 1e-6
"""Largest difference of two similarities that may come from rounding."""


_NO_CORRECTION = re2.compile(
    r"what put it right: (?:the arguments as a whole|(?:[^:;]+: another [^:;]+ was right(?:; |, …)?)+)\.?$"
)
"""End of a step that says which argument was corrected, but not how; a step may be a user's own, and of any text."""
_NAME = re.compile(r"[\w.:/-]+")
"""A word of a step that may be a tool's name; a stop or colon behind the name is part of the word."""


class ProcedureRecord(TypedDict):
    """The fields of a procedure's JSON record that a retrieval reads; ``writer.run`` has all fields."""

    procedure_name: str
    semantic_description: str
    learned_procedure_steps: list[str]
    identified_root_cause: NotRequired[str]
    plan: NotRequired[list[str]]


@dataclass(frozen=True, slots=True)
class Procedure:
    """The active version of a procedure, found for a text.

    Attributes:
        level: level of abstraction of a script; None for a fix or a failure lesson.
        similarity: cosine of the text with the procedure's trigger, or with the nearest task of a run that taught it;
            None if it was found by words only.
        uses: number of rewarded decisions that showed the procedure, in part if several were shown and no use was
            reported.
        use_reward: sum of the procedure's shares of these decisions' rewards.
        occurrences: number of runs that taught or repeated the procedure.
        sources: ids of the cases from which the procedure was learned.
        pinned: true if a person pinned this version, so that no later version replaces it.
        proven_runs: number of proven runs among the sources.
        alternative_to: id of a better procedure that is shown as well, with the same trigger and other steps.
        names_tools: true if names of the procedure's tools have all words of the text.
    """

    id: UUID
    version: int
    kind: ProcedureKind
    origin: ProcedureOrigin
    level: str | None
    task_type: str
    trigger: str
    domain: str
    record: ProcedureRecord
    similarity: float | None
    uses: float
    use_reward: float
    occurrences: int
    query_kind: str | None = None
    success_score: float | None = None
    duration_ms: float | None = None
    sources: frozenset[UUID] = frozenset()
    pinned: bool = False
    proven_runs: int = 0
    alternative_to: UUID | None = None
    names_tools: bool = False

    @property
    def steps(self) -> list[str]:
        """Steps of the procedure, in the order in which an agent takes them."""
        return self.record["learned_procedure_steps"]

    @property
    def cause(self) -> str:
        """Root cause of the failure that the steps put right; empty if no call failed."""
        return self.record.get("identified_root_cause", "")

    @property
    def warns(self) -> bool:
        """True if the procedure states what to avoid."""
        return self.kind == "failure_lesson"

    @property
    def reported(self) -> bool:
        """True if a backend sent the procedure with its run; it was not checked against the run's calls."""
        return self.origin == "run"

    @property
    def is_fix(self) -> bool:
        """True if the procedure says how a failure was put right."""
        return self.level is None and not self.warns

    @property
    def is_hollow(self) -> bool:
        """True if the procedure is a fix that only names the argument at fault: no right value, and no call before."""
        return self.is_fix and not self.steps[:-2] and _NO_CORRECTION.search(self.steps[-1]) is not None

    @property
    def is_proven(self) -> bool:
        """True if a person pinned the procedure, or a later reward proved one of its runs."""
        return self.pinned or self.proven_runs > 0

    @property
    def nearness(self) -> float:
        """Similarity, or 0 if the procedure was found by words only."""
        return self.similarity or 0.0

    @property
    def worth(self) -> float:
        """Similarity times the mean reward of the procedure's uses, which for a new procedure is 4 / 5."""
        return (1.0 if self.similarity is None else self.similarity) * (4 + self.use_reward) / (5 + self.uses)

    @property
    def procedure_name(self) -> str:
        """Name of the procedure."""
        return self.record["procedure_name"]

    @property
    def plan(self) -> list[str]:
        """Plan that the backend gave for the procedure's run; empty without one. ``steps`` are from the run's calls."""
        return self.record.get("plan", [])

    def guidance(self, shown: Mapping[UUID, Sequence[str]] | None = None) -> Guidance:
        """Returns the procedure's fields that ``memory_context`` quotes.

        Its plan is left out if it was learned from one of the ``shown`` cases, whose plan is quoted already. A script
        of the rules names the first of these cases whose plan has the calls of its steps, or their words.

        Args:
            shown: plans of the cases in the text by their ids, in the order of the text; no procedure names a case
                without a plan.
        """
        is_plain = self.kind == "script" and self.origin == "rules" and self.level in {"concrete", "hybrid"}
        plan, case = self.plan, None
        for number, (id_, actions) in enumerate((shown or {}).items(), start=1):
            if id_ in self.sources:
                plan = []
                same = all(
                    step.startswith(f"Call {tool} with ") if (tool := tool_called(action)) else action in step
                    for step, action in zip(self.steps, actions, strict=False)
                )
                case = case or (number if is_plain and same and len(self.steps) == len(actions) else None)
        return Guidance(self.trigger, self.steps, self.cause, self.kind, reported=self.reported, plan=plan, case=case)

    @property
    def why(self) -> str:
        """One line that says how the procedure was found, and how its uses went."""
        match = "its words match" if self.similarity is None else f"similarity {self.similarity:.2f}"
        named = "; the query names its tools" if self.names_tools else ""
        used = f"; {self.use_reward:.1f} of {self.uses:.1f} uses rewarded" if self.uses else "; never used yet"
        count = self.proven_runs or self.occurrences
        runs = f"; {count} runs say so" if count > 1 else ""
        other = "; another way than a better procedure with this trigger" if self.alternative_to else ""
        return f"{match}{named}{used}{runs}{other}{'; a warning: this was never put right' if self.warns else ''}"


@dataclass(frozen=True, slots=True)
class ProcedureMatches:
    """Procedures found for a task, the best first, and the least similarity that they had to reach."""

    matches: Sequence[Procedure] = ()
    threshold: Threshold | None = None
    """Least similarity of the procedures to the task; None if the profile has no procedures, or shows none."""
    of_parts: Sequence[Sequence[Procedure]] = ()
    """Procedures for each part of a task, in the parts' order; empty for a task of one part."""

    def __bool__(self) -> bool:
        """Returns whether a procedure was found."""
        return bool(self.matches) or any(self.of_parts)


@dataclass(frozen=True, slots=True)
class ProcedureAnswer:
    """The answer to a search for procedures.

    Attributes:
        threshold: least similarity that they had to reach.
        degraded: names of the parts of the search that failed.
    """

    procedures: Sequence[Procedure]
    threshold: Threshold
    degraded: list[str]


@dataclass(frozen=True, slots=True)
class ShownCases:
    """The cases of an answer, which its procedures follow; without cases the worthiest procedure comes first.

    Attributes:
        places: place of the plan of each candidate that may teach, by the id of its case: that of the first candidate
            with the plan, from 0.
        similarities: similarity of each of these candidates to the query.
        slate: ids of the cases whose plans are on the slate.
        went_well: ids of the cases on the slate whose runs went well.
        tools: names of the tools that the plans on the slate call; empty if all these plans are in prose.
        warn: true if the slate warns of a run that failed.
    """

    places: Mapping[UUID, int] = field(default_factory=dict)
    similarities: Sequence[float] = ()
    slate: frozenset[UUID] = frozenset()
    went_well: frozenset[UUID] = frozenset()
    tools: frozenset[str] = frozenset()
    warn: bool = False

    def place(self, procedure: Procedure) -> int:
        """Returns the place of the first candidate that taught the procedure.

        Without such a candidate it is 0 for a procedure that was found by words, and else the number of candidates that
        are more similar to the query.
        """
        own = [self.places[source] for source in procedure.sources if source in self.places]
        similarity = procedure.similarity
        return min(own) if own else sum(each > similarity for each in self.similarities if similarity is not None)

    def allow(self, procedure: Procedure) -> bool:
        """Returns whether the procedure may be shown beside the cases; all but some failure lessons may.

        A failure lesson may not if the slate shows one of its runs as a success. It may not either if its steps name
        none of the tools that the plans on the slate call, unless a person pinned it or the query names its tools.
        """
        if not procedure.warns:
            return True
        if procedure.sources & self.went_well:
            return False
        named = {name.rstrip(".:") for step in procedure.steps for name in _NAME.findall(step)}
        return procedure.pinned or procedure.names_tools or not self.tools or bool(self.tools & named)


def compose_procedures(
    found: ProcedureMatches, most: int, cases: ShownCases, *, quarantine: bool = False
) -> list[Procedure]:
    """Returns at most ``most`` procedures to show together: those of the task's parts, then the best of the others.

    Left out are fixes that do not say what to do, and failure lessons that the cases do not allow.

    A part's procedure counts if a case on the slate taught it: a greeting is no part of a task, even if other tasks
    begin with it. The parts' procedures are taken if no procedure is near the whole task, or if the best ones of at
    least FEWEST parts differ and are nearer to their parts than the nearest one of the whole task is to the task;
    NEARLY as near is enough if this is one of them.

    Args:
        found: the procedures found for the task.
        most: largest number of procedures; one failure lesson at most is among them, and none if the slate warns.
        cases: the cases of the answer.
        quarantine: true to leave out procedures that are not proven.
    """
    whole, *parts = (
        [each for each in matches if not each.is_hollow and cases.allow(each)]
        for matches in (found.matches, *found.of_parts)
    )
    plain = _together(whole, most, cases, warnings=0 if cases.warn else 1, quarantine=quarantine)
    if cases.slate:
        parts = [[each for each in part if each.sources & cases.slate] for part in parts]
    of_parts = (_together(part, 1, ShownCases(), warnings=0, quarantine=quarantine) for part in parts)
    firsts = {each.id: each for part in of_parts for each in part}
    if whole and len(firsts) < FEWEST:
        return plain
    if plain:
        best = max(plain, key=lambda one: one.nearness)
        least = NEARLY * best.nearness if best.id in firsts else best.nearness + ROUNDING
        if any(each.nearness < least for each in firsts.values()):
            return plain
    sources = frozenset(source for each in firsts.values() for source in each.sources)
    others = [each for each in plain if each.id not in firsts and each.sources.isdisjoint(sources)]
    return as_alternatives([*firsts.values(), *others][:most])


def _together(
    matches: Sequence[Procedure], most: int, cases: ShownCases, *, warnings: int, quarantine: bool
) -> list[Procedure]:
    """Returns procedures for one text, at most ``most``, in the order of the cases that taught them.

    Unproven procedures are left out in quarantine. Of procedures from one run or with equal steps, one is kept: at one
    place the fix, which says why, or else the better one. Without a procedure of the first place there are only those
    that a person pinned or whose tools the query names: another one would stand above the case that is most likely to
    be right. At most ``warnings`` failure lessons, which have no places, are among them.
    """
    if quarantine:
        matches = [each for each in matches if each.is_proven]
    placed = [(cases.place(each), each) for each in matches]
    fixed = {(place, source) for place, each in placed if each.is_fix for source in each.sources}
    shown: list[Procedure] = []
    warned, is_led = 0, False
    for place, each in sorted(placed, key=lambda one: (one[0], -one[1].worth)):
        is_wanted = each.pinned or each.names_tools or place == 0 or is_led
        is_allowed = warned < warnings if each.warns else is_wanted
        has_fix = not each.is_fix and any((place, source) in fixed for source in each.sources)
        steps = [*map(folded, each.steps)]
        repeats = any(each.sources & other.sources or steps == [*map(folded, other.steps)] for other in shown)
        if len(shown) < most and is_allowed and not has_fix and not repeats:
            shown.append(each)
            warned += each.warns
            is_led |= place == 0 and not each.warns
    return as_alternatives(shown)


def as_alternatives(shown: Sequence[Procedure]) -> list[Procedure]:
    """Returns the procedures, those after the first of a trigger marked as alternatives to it, except warnings."""
    first: dict[str, UUID] = {}
    marked: list[Procedure] = []
    for each in shown:
        better = each.id if each.warns else first.setdefault(folded(without_example(each.trigger)), each.id)
        marked.append(each if better == each.id else replace(each, alternative_to=better))
    return marked
