"""Turns a successful run by rules into a script of its calls, or else of its plan."""

from collections.abc import Sequence
from itertools import groupby, islice

from retrieval.tables.kinds import AbstractionLevel
from writer.analysis.calls import Call, StoredRun
from writer.analysis.failures import find
from writer.analysis.placeholders import abstract, clean, values_of
from writer.analysis.remedy import tool_name
from writer.analysis.statements import language_of
from writer.procedures.ports import ProcedureDraft
from writer.procedures.rules.steps import steps_of, task_type, worth_repeating
from writer.run import ScriptData

TASK_CHARS = 240
MOST_PLAN_STEPS = 100
STEP_CHARS = 900
MOST_NAMED = 5
MOST_LOOKED_AT = 200


def script(run: StoredRun, level: AbstractionLevel) -> ProcedureDraft | None:
    """Returns the script of a run, without failed and repeated calls; None: the run has no steps."""
    failures = find(run.calls, run.turns, succeeded=run.outcome == "success", task=run.task)
    # calls that a later one replaced are left out as well, though they may have reported no error
    replaced = {index for failure in failures.recovered for index in failure.failed}
    calls = worth_repeating(run.calls, run.task, replaced)
    steps = steps_of(calls, level) if calls else planned(run.plan, level)
    if not steps:
        return None
    when, kind = trigger(run.task, calls, level), task_type(calls)
    tools = list(dict.fromkeys(tool_name(call.tool) for call in calls))[:MOST_NAMED]
    cues = [f"tool {name}" for name in tools] + ([f"kind of work: {kind}"] if kind else [])
    record = ScriptData(
        procedure_name=clean(f"{kind}: {when}" if kind else when, 200),
        semantic_description=clean(f"How a task like this was done: {when}", 5_000),
        learned_procedure_steps=steps,
        critical_contextual_cues=[clean(cue, 500) for cue in cues],
        example_scenario_abstract=clean(
            f"Task: {trigger(run.task, calls, 'abstract')}. Steps: {len(steps)}"
            f"{', with ' + ', '.join(tools) if tools else ''}.",
            5_000,
        ),
    )
    return ProcedureDraft("script", "rules", record, when, task_type=clean(kind, 200), level=level)


def trigger(task: str, calls: Sequence[Call], level: AbstractionLevel) -> str:
    """Returns the trigger of a procedure in one line: the task for which to use it, at this level of abstraction."""
    line = clean(task, TASK_CHARS)
    general = abstract(line, _values_in(calls), is_task=True)
    return _at_level(line, clean(general, TASK_CHARS), level) or "a task without words"


def planned(plan: Sequence[str], level: AbstractionLevel, calls: Sequence[Call] = ()) -> list[str]:
    """Returns the steps of a plan at this level of abstraction, without blank steps and repeats in a row.

    Words that are values in the run's calls are values in its plan, too.
    """
    known = _values_in(calls)
    once = groupby(clean(step, STEP_CHARS) for step in plan[:MOST_PLAN_STEPS])
    return [_at_level(step, clean(abstract(step, known, is_task=True), STEP_CHARS), level) for step, _ in once if step]


def _values_in(calls: Sequence[Call]) -> set[str]:
    """Returns the words that are names or values in the arguments of the first MOST_LOOKED_AT calls."""
    known: set[str] = set()
    for call in islice(calls, MOST_LOOKED_AT):
        is_prose = isinstance(call.arguments, str) and language_of(call.arguments) is None
        known |= set() if is_prose else values_of(call.arguments)
    return known


def _at_level(text: str, general: str, level: AbstractionLevel) -> str:
    if level == "concrete" or text == general:
        return text
    return general if level == "abstract" else f"{general} (for example: {text})"
