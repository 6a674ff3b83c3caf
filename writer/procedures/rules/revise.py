"""Revises a procedure by rules: adds notes to its steps about calls that failed, and calls that worked."""

import re
from collections.abc import Sequence
from dataclasses import replace

from policy.channels import words
from retrieval.tables.kinds import AbstractionLevel
from writer.analysis.calls import Call, StoredRun
from writer.analysis.causes import cause_of, quoted
from writer.analysis.failures import Failure
from writer.analysis.placeholders import clean
from writer.analysis.remedy import tool_name
from writer.procedures.ports import Analysis, ProcedureDraft
from writer.procedures.rules.script import planned
from writer.procedures.rules.steps import called, without_examples

STEP_CHARS = 2_000
MOST_STEPS = 100
MOST_NOTES = 3
"""Maximum notes on one step, so that the step can still be read."""
MOST_FAILURES = 20
MOST_LEFT_OUT = 3
PLAN_CHARS = 400
"""Maximum characters of a quotation of a failed run's plan."""
MARK = " In a run that failed: "
NOT_ENOUGH = "all steps were done and no call failed, so check the result before the end."


def revised(used: ProcedureDraft, run: StoredRun, analysis: Analysis) -> ProcedureDraft | None:
    """Returns the procedure with notes from a failed run, or None if the run adds no note.

    A failure without a fix becomes a warning, a failure with a fix a note of the call that worked. If no call failed,
    the steps that the run omitted are marked; if the run omitted none, a note says that the steps did not suffice; if
    no step of it is in the run's plan, a note quotes that plan.
    """
    calls, steps = run.calls, list(used.record.learned_procedure_steps)
    level = used.level or "abstract"
    for failure in analysis.lost[:MOST_FAILURES]:
        note = f"{_met(failure, calls, level)}; nothing put that right, so avoid this call."
        _annotate(steps, failure.tool, note)
    for failure in analysis.recovered[:MOST_FAILURES]:
        success = called(calls[failure.succeeded or 0], level)
        _annotate(steps, failure.tool, f"{_met(failure, calls, level)} at first; what worked was {success}.")
    if not analysis.lost and not analysis.recovered:
        _note_omissions(steps, run, "concrete" if level == "concrete" else "abstract")
    if steps == used.record.learned_procedure_steps:
        return None
    record = used.record.model_copy(update={"learned_procedure_steps": steps})
    return replace(used, kind="revision", origin="rules", record=record)


def _note_omissions(steps: list[str], run: StoredRun, level: AbstractionLevel) -> None:
    """Marks in place the steps that the run omitted, or notes that it followed all; nothing if it followed none.

    A run without calls that followed none had another plan, and a note says which.
    """
    followed = [_followed(step.partition(MARK)[0], run) for step in steps if not step.startswith(MARK.strip())]
    left, note = [index for index, did in enumerate(followed) if did is False], NOT_ENOUGH
    if True not in followed:
        other = [] if run.calls or False not in followed else planned(run.plan, level)
        if not other:
            return
        left, note = [], clean(f"another plan did not do: {'; '.join(other)}", PLAN_CHARS)
    for index in left[:MOST_LEFT_OUT]:
        if MARK not in steps[index]:
            steps[index] = clean(f"{steps[index]}{MARK}this step was left out.", STEP_CHARS)
    if not left:
        _append(steps, note)


def _followed(step: str, run: StoredRun) -> bool | None:
    """Returns whether the run did the step: called its tool, or planned it in much the same words.

    None: it cannot be told, for the step names no tool and the run has no plan.
    """
    if named := re.match(r"Call (\S+)", step):
        return named[1].rstrip(".") in {tool_name(call.tool) for call in run.calls if call.tool}
    if run.calls or not run.plan:
        return None
    wanted = set(words(without_examples(step)))
    return any(2 * len(wanted & set(words(line))) >= len(wanted) for line in run.plan)


def _met(failure: Failure, calls: Sequence[Call], level: AbstractionLevel) -> str:
    """Returns the failed call with its error: the class, and a quotation without values and instructions."""
    message = quoted(failure.message) if failure.evidence in {"status", "output"} else ""
    quote = f' ("{message}")' if message else ""
    return f"{called(calls[failure.failed[-1]], level)} answered with {cause_of(failure.message).name}{quote}"


def _annotate(steps: list[str], tool: str, note: str) -> None:
    """Adds the note in place, to the first step that calls the tool, or as a step of its own at the end."""
    if any(without_examples(note) in without_examples(step) for step in steps):
        return
    name = re.compile(rf"(?<![\w.]){re.escape(tool_name(tool))}(?!\w)")
    plain = [without_examples(step.partition(MARK)[0]) for step in steps]
    place = next((index for index, step in enumerate(plain) if name.search(step)), None)
    if place is None:
        _append(steps, note)
    elif steps[place].count(MARK) < MOST_NOTES:
        steps[place] = clean(steps[place] + MARK + note, STEP_CHARS)


def _append(steps: list[str], note: str) -> None:
    """Adds the note in place as a step of its own, unless it is there or there are enough."""
    step = clean(f"{MARK.strip()} {note}", STEP_CHARS)
    notes = [each for each in steps if each.startswith(MARK.strip())]
    if step not in notes and len(notes) < MOST_NOTES and len(steps) < MOST_STEPS:
        steps.append(step)
