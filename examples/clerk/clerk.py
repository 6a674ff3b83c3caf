"""The scripted clerk: knows which tools an errand takes, and tries what to call each with. It is not an LLM.

It begins with what memory says, and goes on with its own list, in an order of its own; what memory says does not work
it tries last. Of procedures it reads the steps ("Call refund_payment with number=…, reason=…"), and in a step what
a revision notes: "what worked was …" before the step itself, "… so avoid this call" after everything else. Of cases it
reads the plans of the successes.
"""

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from app.demo.memory import AgentRun, RememberedProcedure
from app.demo.world import Briefing, Environment, StepsSpent
from examples.clerk.office import ARGUMENTS, Form

_CALL = re.compile(r"(\w+) (?:called )?with ([^.;]*)")
_NOTE = re.compile(r"In a run that failed: ")
_WORKED = "what worked was "
_AVOID = "avoid this call"


@dataclass
class Advice:
    """What memory says of how to call the tools, the best first.

    Attributes:
        good: calls that worked, each with the id of the case or procedure that says so.
        bad: calls that did not.
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
        self._procedures = {each.procedure_id for each in slate.procedures}
        self._used: dict[str, None] = {}
        self._filed: list[Form] = []

    async def run(self, world: Environment) -> AgentRun:
        """The finished run: the errand done, or the steps or the ideas spent."""
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
        """Yields each form of the tool once, and who says that it works; nobody of the clerk's own."""
        own = [Form(tool, argument) for argument in self._rng.sample(ARGUMENTS, len(ARGUMENTS))]
        said = {form: source for form, source in reversed(self._advice.good) if form.tool == tool}
        told = [(form, source) for form, source in reversed(said.items()) if form not in self._advice.bad]
        rest = sorted((form for form in own if form not in dict(told)), key=self._advice.bad.__contains__)
        yield from told
        yield from ((form, "") for form in rest)


def advice(procedures: Iterable[RememberedProcedure]) -> Advice:
    """Returns what the steps of the procedures say, the best procedure first."""
    found = Advice()
    for procedure in procedures:
        for line in procedure.steps:
            step, *notes = _NOTE.split(line)
            if procedure.kind == "failure_lesson":
                found.bad.update(_forms(step))
                continue
            works: list[Form] = []
            for note in notes:
                before, worked, after = note.partition(_WORKED)
                if worked:
                    works = [*_forms(after), *works]  # the newest note first
                elif _AVOID in note:
                    found.bad.update(_forms(before))
            found.good += [(form, procedure.procedure_id) for form in (*works, *_forms(step))]
    return found


def _forms(text: str) -> list[Form]:
    """Returns the calls that a text names, in their order."""
    named = [(tool, re.findall(r"\w+", given)) for tool, given in _CALL.findall(text)]
    return [Form(tool, word) for tool, words in named for word in words if word in ARGUMENTS]
