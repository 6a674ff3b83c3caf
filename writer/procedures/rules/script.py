"""The rule-based abstractor: a successful run as a script, made of its calls or else of its plan."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from retrieval.tables.kinds import AbstractionLevel
from writer.analysis.calls import Call, StoredRun
from writer.analysis.failures import find
from writer.analysis.placeholders import abstract, clean, values_of
from writer.analysis.remedy import tool_name
from writer.analysis.statements import is_statement
from writer.procedures.ports import Draft
from writer.procedures.rules.steps import steps_of, task_type, worth_repeating
from writer.run import ScriptData

TASK_CHARS = 240
MOST_PLAN_STEPS = 100
MOST_NAMED = 5
MOST_LOOKED_AT = 200


@dataclass(frozen=True, slots=True)
class RuleAbstractor:
    """Abstracts a run's calls, or else its plan; pure, deterministic, linear in their number."""

    async def abstract(self, run: StoredRun, level: AbstractionLevel) -> Draft | None:
        """Returns the script of the run, worked out beside the event loop; None where it has no step."""
        return await asyncio.to_thread(script, run, level)


def script(run: StoredRun, level: AbstractionLevel) -> Draft | None:
    """Returns how the task was done, without what failed and what was done twice; None for a run without steps."""
    calls = worth_repeating(_not_put_right(run), run.task)
    steps = steps_of(calls, level) if calls else planned(run.plan, level)
    if not steps:
        return None
    when, kind = trigger(run.task, calls, level), task_type(calls)
    by = _named(calls)
    cues = [f"tool {name}" for name in by] + ([f"kind of work: {kind}"] if kind else [])
    record = ScriptData(
        procedure_name=clean(f"{kind}: {when}" if kind else when, 200),
        semantic_description=clean(f"How a task like this was done: {when}", 5_000),
        learned_procedure_steps=steps,
        critical_contextual_cues=[clean(cue, 500) for cue in cues],
        example_scenario_abstract=clean(
            f"Task: {trigger(run.task, calls, 'abstract')}. Steps: {len(steps)}"
            f"{', with ' + ', '.join(by) if by else ''}.",
            5_000,
        ),
    )
    return Draft("script", "rules", record, when, task_type=clean(kind, 200), level=level)


def trigger(task: str, calls: Sequence[Call], level: AbstractionLevel) -> str:
    """Returns in one line when a procedure fits: in a task like this one, described at this level."""
    said = clean(task, TASK_CHARS)
    named = (call.given for call in islice(calls, MOST_LOOKED_AT) if not _is_prose(call.given))
    known = {word for given in named for word in values_of(given)}
    return _at_level(said, clean(abstract(said, known), TASK_CHARS), level) or "a task without words"


def _not_put_right(run: StoredRun) -> list[Call]:
    """Returns the calls without those in whose place a later one worked, also where they reported no error."""
    found = find(run.calls, run.turns, succeeded=run.outcome == "success")
    wrong = {index for failure in found.recovered for index in failure.failed}
    return [call for call in run.calls if call.index not in wrong]


def _is_prose(given: object) -> bool:
    """Returns whether a call was given a text and nothing else, whose words are not values."""
    return isinstance(given, str) and not is_statement(given)


def planned(plan: Sequence[str], level: AbstractionLevel) -> list[str]:
    """Returns the steps of a plan at this level, without blank ones and repeats in a row."""
    said = [clean(step, 900) for step in plan[:MOST_PLAN_STEPS]]
    once = [step for index, step in enumerate(said) if step and step != (said[index - 1] if index else "")]
    return [_at_level(step, abstract(step), level) for step in once]


def _at_level(said: str, general: str, level: AbstractionLevel) -> str:
    if level == "concrete" or said == general:
        return said
    return general if level == "abstract" else f"{general} (for example: {said})"


def _named(calls: Sequence[Call]) -> list[str]:
    names = list(dict.fromkeys(tool_name(call.tool) for call in calls))
    return names[:MOST_NAMED]
