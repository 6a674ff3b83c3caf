"""The rule-based reviser: adds to a procedure's steps notes of what failed there, or what worked."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from retrieval.tables.kinds import AbstractionLevel
from writer.analysis.calls import Call, StoredRun
from writer.analysis.causes import cause_of, quoted
from writer.analysis.failures import Failure
from writer.analysis.placeholders import clean
from writer.analysis.remedy import tool_name
from writer.procedures.ports import Analysis, Draft
from writer.procedures.rules.steps import called, without_examples

STEP_CHARS = 2_000
MOST_STEPS = 100
MOST_NOTES = 3
"""Most notes on one step: more would bury the step itself."""
MOST_FAILURES = 20
MOST_LEFT_OUT = 3
MARK = " In a run that failed: "


@dataclass(frozen=True, slots=True)
class RuleReviser:
    """Compares a procedure with a failed run that used it; pure, deterministic, linear in the run's calls."""

    async def revise(self, used: Draft, run: StoredRun, analysis: Analysis) -> Draft | None:
        """Returns the procedure with notes on its failing steps, worked out beside the event loop."""
        return await asyncio.to_thread(revised, used, run, analysis)


def revised(used: Draft, run: StoredRun, analysis: Analysis) -> Draft | None:
    """Returns the procedure with notes; None where the run adds nothing to it.

    A failure without a fix becomes a note of what to avoid, one with a fix a note of what worked. Where no call
    failed, the steps that the run left out are marked.
    """
    calls, steps = run.calls, list(used.record.learned_procedure_steps)
    level = used.level or "abstract"
    notes = [(each.tool, _lost(each, calls, level)) for each in analysis.lost[:MOST_FAILURES]]
    notes += [(each.tool, _worked(each, calls, level)) for each in analysis.recovered[:MOST_FAILURES]]
    for tool, note in notes:
        _annotate(steps, tool, note)
    if not notes:
        _mark_left_out(steps, calls)
    if steps == used.record.learned_procedure_steps:
        return None
    record = used.record.model_copy(update={"learned_procedure_steps": steps})
    return replace(used, kind="revision", origin="rules", record=record)


def _lost(failure: Failure, calls: Sequence[Call], level: AbstractionLevel) -> str:
    return f"{_met(failure, calls, level)}; nothing put that right, so avoid this call."


def _worked(failure: Failure, calls: Sequence[Call], level: AbstractionLevel) -> str:
    return f"{_met(failure, calls, level)} at first; what worked was {called(calls[failure.succeeded or 0], level)}."


def _met(failure: Failure, calls: Sequence[Call], level: AbstractionLevel) -> str:
    """Returns the call that failed and what it met: the class of the error, and its words without values and orders."""
    said = quoted(failure.message) if failure.evidence in {"status", "output"} else ""
    quote = f' ("{said}")' if said else ""
    return f"{called(calls[failure.failed[-1]], level)} answered with {cause_of(failure.message).name}{quote}"


def _annotate(steps: list[str], tool: str, note: str) -> None:
    """Puts the note on the first step that calls the tool, or at the end where none does; in place."""
    if any(without_examples(note) in without_examples(step) for step in steps):
        return
    place = next((index for index, step in enumerate(steps) if _calls(step, tool)), None)
    if place is None:
        if len(steps) < MOST_STEPS and sum(step.startswith(MARK.strip()) for step in steps) < MOST_NOTES:
            steps.append(clean(f"{MARK.strip()} {note}", STEP_CHARS))
    elif steps[place].count(MARK) < MOST_NOTES:
        steps[place] = clean(steps[place] + MARK + note, STEP_CHARS)


def _mark_left_out(steps: list[str], calls: Sequence[Call]) -> None:
    """Marks the steps whose tool the run never called, if it called any other of the procedure; in place."""
    tools = {tool_name(call.tool) for call in calls if call.tool}
    named = [found.group(1).rstrip(".") if (found := re.match(r"Call (\S+)", step)) else "" for step in steps]
    if tools.isdisjoint(named):
        return
    left = [index for index, tool in enumerate(named) if tool and tool not in tools]
    for index in left[:MOST_LEFT_OUT]:
        if MARK not in steps[index]:
            steps[index] = clean(f"{steps[index]}{MARK}this step was left out.", STEP_CHARS)


def _calls(step: str, tool: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(tool_name(tool))}(?!\w)", step.partition(MARK)[0]) is not None
