"""The words of a lesson (SOURCES row A2): what failed, why, and what to do or to leave.

Names, causes, interventions and steps are made of tool names, argument names, placeholders and the fixed list of
causes; of a tool's output only the sanitised quotation in the summary is left.
"""

import re
from collections.abc import Sequence

from writer.analysis.causes import Cause, cause_of, instructs, quoted
from writer.analysis.error_output import glimpse, texts_in
from writer.analysis.failures import Call, Failure, Found
from writer.analysis.placeholders import abstract, clean, form, values_of
from writer.analysis.state_changes import changes_state
from writer.procedures.ports import Run
from writer.run import ProcedureData

TOOL_CHARS = 80
TASK_CHARS = 240
STEP_CHARS = 1_000
MOST_NAMED = 5
MOST_LOOKED_AT = 50
PASSING = {"a rate-limit error", "an unavailable-service error"}

_BY = {
    "status": "its status",
    "output": "its output, though its status was ok",
    "empty_output": "its empty output and the next spelling that found something",
    "complaint": "a complaint of the user; which call it meant is inferred",
}


def learned_fix(run: Run, found: Found, told: Failure) -> ProcedureData:
    """Returns the lesson of a failure that was put right."""
    tool, cause = tool_name(told.tool), cause_of(told.message)
    what = _changed(told)
    before = _first_done(found, told)
    failed, success = found.calls[told.failed[-1]], found.calls[told.succeeded or 0]
    shape, task = form(success.given), _task(run, failed, success)
    return ProcedureData(
        procedure_name=clean(f"{tool}: {_name(told)} after {cause.name}", 200),
        semantic_description=clean(
            f"How to get {tool} to work when it answers with {cause.name}, in a task like: {task}. "
            f"{_sentence(_remedy(told, before, what))}",
            STEP_CHARS,
        ),
        initial_failure_summary=_summary(told, failed, cause),
        identified_root_cause=clean(
            f"{_sentence(_root(told, cause, before, what))} Judged by the order of the calls.", STEP_CHARS
        ),
        successful_intervention=clean(_sentence(_remedy(told, before, what)), STEP_CHARS),
        learned_procedure_steps=_steps(told, cause, before, what, shape),
        critical_contextual_cues=_cues(run, told, cause),
        example_scenario_abstract=clean(
            f"Task: {task}. {tool} called with {form(failed.given)} answers with {cause.name}; "
            f"called with {shape} it works.",
            STEP_CHARS,
        ),
    )


def failure_lesson(run: Run, found: Found, told: Failure) -> ProcedureData:
    """Returns the lesson of a failure that nothing put right: what not to do, and never a fix."""
    tool, cause = tool_name(told.tool), cause_of(told.message)
    failed = found.calls[told.failed[-1]]
    shape = form(failed.given)
    went_on = run.outcome == "success"
    return ProcedureData(
        procedure_name=clean(f"Avoid: {tool} with {cause.name}", 200),
        semantic_description=clean(
            f"Failure lesson: in a task like: {_task(run, failed)}, {tool} answers with {cause.name}, "
            "and no later call of it in the run put that right.",
            STEP_CHARS,
        ),
        initial_failure_summary=_summary(told, failed, cause),
        identified_root_cause=clean(f"{_sentence(cause.means)} What would have helped is not known.", STEP_CHARS),
        successful_intervention="None: the failure was never recovered from."
        + (" The run reached its goal without this call." if went_on else ""),
        learned_procedure_steps=[
            clean(
                f"Do not repeat {tool} with arguments of the form {shape} once it answers with {cause.name}.",
                STEP_CHARS,
            ),
            "Look for another way to the goal."
            if went_on
            else "Look for another way, or say early that it does not work.",
        ],
        critical_contextual_cues=["failure lesson", *_cues(run, told, cause)],
        example_scenario_abstract=clean(
            f"Task: {_task(run, failed)}. {tool} called with {shape} answers with {cause.name}"
            f"{f', {len(told.failed)} times' if len(told.failed) > 1 else ''}, and the run never gets past it.",
            STEP_CHARS,
        ),
    )


def tool_name(tool: str) -> str:
    """Returns a tool's name without what no name has; one in several words is no name but a text."""
    return re.sub(r"[^\w.:/-]+", "_", clean(tool, TOOL_CHARS)) or "the tool"


def _task(run: Run, *calls: Call) -> str:
    known = {word for call in calls for word in values_of(call.given)}
    said = clean(run.task, TASK_CHARS)
    return clean(abstract(said, known), TASK_CHARS).rstrip(".!?…") or "one without words"


def _name(told: Failure) -> str:
    names = _named([item.path for item in told.differences])
    return {
        "same_args_retry": "repeat the call unchanged",
        "same_args_after_other_tool": "repeat the call after another one",
        "args_changed": f"call again with other arguments ({names})",
        "args_changed_after_other_tool": f"look up and correct the arguments ({names})",
    }[told.kind or "same_args_retry"]


def _named(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")


def _changed(told: Failure) -> str:
    return "; ".join(item.how for item in told.differences[:MOST_NAMED]) or "the arguments as a whole"


def _first_done(found: Found, told: Failure) -> list[str]:
    """Returns which tools, called between failure and success, the success seems to owe something.

    With other arguments: those whose output holds a value that is new, or else those that only look things up. Never
    one that an output named while giving instructions.
    """
    if told.succeeded is None:
        return []
    calls = found.calls[told.failed[0] : min(told.succeeded, told.failed[0] + MOST_LOOKED_AT)]
    planted = "\n".join(text for call in calls if instructs(text := glimpse(call.output)))
    names = [name for name in _helpful(found, told) if name not in planted]
    return [tool_name(name) for name in names[:MOST_NAMED]]


def _helpful(found: Found, told: Failure) -> Sequence[str]:
    if told.kind != "args_changed_after_other_tool" or told.succeeded is None:
        return told.between
    last = told.failed[-1]
    fresh = texts_in(found.calls[told.succeeded].given) - texts_in(found.calls[last].given)
    between = found.calls[last + 1 : min(told.succeeded, last + 1 + MOST_LOOKED_AT)]
    sources = [call.tool for call in between if any(text in glimpse(call.output) for text in fresh)]
    return list(dict.fromkeys(sources)) or [name for name in told.between if not changes_state(name)]


def remedy(found: Found, told: Failure) -> str:
    """Returns what put the failure right, in words that hold nothing of the run's data."""
    return _remedy(told, _first_done(found, told), _changed(told))


def _remedy(told: Failure, before: list[str], what: str) -> str:
    tool, first = tool_name(told.tool), f"after {_named(before)}, " if before else ""
    if told.kind in {"same_args_retry", "same_args_after_other_tool"}:
        return f"{first}calling {tool} again with the same arguments worked"
    return f"{first}calling {tool} again with other arguments worked: {what}"


def _root(told: Failure, cause: Cause, before: list[str], what: str) -> str:
    if told.kind == "same_args_retry":
        return f"{cause.means}; the arguments were right, for the same call worked when it was repeated"
    if told.kind == "same_args_after_other_tool":
        helper = _named(before) or "another call"
        return f"{cause.means}; the arguments were right, and what was missing was done by {helper}"
    found_out = f", and what was right was found out with {_named(before)}" if before else ""
    return f"{cause.means}; the arguments were at fault{found_out}: {what}"


def _steps(told: Failure, cause: Cause, before: list[str], what: str, shape: str) -> list[str]:
    tool = tool_name(told.tool)
    steps = [f"Call {name}." for name in before]
    if told.kind == "same_args_retry":
        steps += [f"When {tool} answers with {cause.name}, repeat the call with the same arguments."]
        steps += ["Wait a little before each further repetition."] if cause.name in PASSING else []
    elif told.kind == "same_args_after_other_tool":
        steps += [f"Call {tool} with {shape}."]
    else:
        steps += [f"Call {tool} with {shape}.", f"Check the arguments before the call; what put it right: {what}."]
    return [clean(step, STEP_CHARS) for step in steps]


def _summary(told: Failure, failed: Call, cause: Cause) -> str:
    said = quoted(told.message)
    times = f", {len(told.failed)} times" if len(told.failed) > 1 else ""
    shape = form(failed.given)
    quote = f' It said: "{said}".' if said and told.evidence in {"status", "output"} else ""
    return clean(f"{tool_name(told.tool)} called with {shape} answered with {cause.name}{times}.{quote}", STEP_CHARS)


def _cues(run: Run, told: Failure, cause: Cause) -> list[str]:
    cues = [f"tool {tool_name(told.tool)}", f"answer: {cause.name}", f"failure told by {_BY[told.evidence]}"]
    cues += [f"kind of fix: {told.kind}"] if told.kind else []
    cues += [f"argument {item.path} {item.change}" for item in told.differences[:MOST_NAMED]]
    cues += [f"outcome of the whole run: {clean(run.outcome, 20)}"] if run.outcome != "success" else []
    return [clean(cue, 500) for cue in cues]


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
