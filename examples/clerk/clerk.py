"""The scripted clerk: knows the tools of an errand, and tries arguments for each. It is not an LLM.

It begins with calls that memory recommends, and goes on with its own list in a drawn order; calls that memory warns of
come last. From procedures it reads the steps ("Call refund_payment with number=…, reason=…") and the notes of revisions
in them: "what worked was …" comes before the step itself, "… so avoid this call" after everything else. From cases it
reads the plans of the successes.
"""

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from app.demo.memory import AgentRun, RememberedProcedure
from app.demo.operator.scratch import StepsSpent
from examples.clerk.office import ARGUMENTS, Form
from examples.world import Briefing, Environment

_CALL = re.compile(r"(\w+) (?:called )?with ([^.;]*)")
_NOTE = re.compile(r"In a run that failed: ")
_WORKED = "what worked was "
_AVOID = "avoid this call"


@dataclass
class Advice:
    """Calls that memory recommends, the best first, and calls that it warns of.

    Attributes:
        good: calls that worked, each with the id of its case or procedure.
        bad: calls that did not work.
    """

    good: list[tuple[Form, str]] = field(default_factory=list)
    bad: set[Form] = field(default_factory=set)


class Clerk:
    """One run of one errand."""

    def __init__(self, briefing: Briefing) -> None:
        self._text: str = briefing.task.text
        self._tools: Sequence[str] = briefing.observation
        self._rng = random.Random(briefing.seed)
        slate = briefing.slate
        self._advice = advice(slate.procedures)
        plans = [case for case in slate.cases if case.outcome == "success"]
        self._advice.good += [(form, case.case_id) for case in plans for line in case.plan for form in _forms(line)]
        self._procedures = {each.id for each in slate.procedures}
        self._used: dict[str, None] = {}
        self._filed: list[Form] = []

    async def run(self, world: Environment) -> AgentRun:
        """Returns the finished run: the errand done, or no steps or forms left."""
        try:
            for tool in self._tools:
                if not await self._file(tool, world):
                    break
        except StepsSpent:
            pass
        return AgentRun(
            task=self._text,
            plan=tuple(f"{form.tool} with {form.argument}" for form in self._filed),
            traces=tuple(world.traces),
            success=world.done,
            first_try=len(world.traces) == len(self._tools),
            used_case_ids=tuple(each for each in self._used if each not in self._procedures),
            used_procedure_ids=tuple(each for each in self._used if each in self._procedures),
        )

    async def _file(self, tool: str, world: Environment) -> bool:
        """Tries the forms of a tool until one is taken."""
        for form, source in self._tries(tool):
            if source:
                self._used[source] = None
            if await world.step(form):
                self._filed.append(form)
                return True
        return False

    def _tries(self, tool: str) -> Iterator[tuple[Form, str]]:
        """Yields each form of the tool once, with the id of its source, empty for the clerk's own."""
        own = [Form(tool, argument) for argument in self._rng.sample(ARGUMENTS, len(ARGUMENTS))]
        recommended = {form: source for form, source in reversed(self._advice.good) if form.tool == tool}
        first = [(form, source) for form, source in reversed(recommended.items()) if form not in self._advice.bad]
        rest = sorted((form for form in own if form not in dict(first)), key=self._advice.bad.__contains__)
        yield from first
        yield from ((form, "") for form in rest)


def advice(procedures: Iterable[RememberedProcedure]) -> Advice:
    """Returns the advice in the steps of the procedures, the best procedure first."""
    collected = Advice()
    for procedure in procedures:
        for line in procedure.steps:
            step, *notes = _NOTE.split(line)
            if procedure.kind == "failure_lesson":
                collected.bad.update(_forms(step))
                continue
            works: list[Form] = []
            for note in notes:
                before, worked, after = note.partition(_WORKED)
                if worked:
                    works = [*_forms(after), *works]  # the newest note first
                elif _AVOID in note:
                    collected.bad.update(_forms(before))
            collected.good += [(form, procedure.id) for form in (*works, *_forms(step))]
    return collected


def _forms(text: str) -> list[Form]:
    """Returns the calls in a text, in their order."""
    named = [(tool, re.findall(r"\w+", arguments)) for tool, arguments in _CALL.findall(text)]
    return [Form(tool, word) for tool, words in named for word in words if word in ARGUMENTS]
