"""The texts of a learned-procedure record: the failure, its cause, and what to do or to avoid.

Names, interventions and steps consist of tool names, argument names, values that name a choice, placeholders and the
fixed list of causes; a tool's output appears only in the summary and the cause, as a sanitised quotation.
"""

from retrieval.patterns import read
from writer.analysis.calls import Call, StoredRun
from writer.analysis.causes import Cause, cause_of, quoted
from writer.analysis.failures import Failure, RunFailures
from writer.analysis.placeholders import clean, form, form_of
from writer.analysis.remedy import MOST_NAMED, called_first, changed, instead, listed, remedy_text, tool_name
from writer.analysis.value_differences import told
from writer.procedures.rules.script import trigger
from writer.run import ProcedureData

STEP_CHARS = 1_000
PASSING_CAUSES = {"a rate-limit error", "an unavailable-service error"}

_TEXTS = read("writer.procedures", "fixes.toml")
_NAMES: dict[str, str] = _TEXTS["names"]
_EVIDENCE_TEXT: dict[str, str] = _TEXTS["evidence"]


def learned_fix(run: StoredRun, failures: RunFailures, failure: Failure) -> ProcedureData:
    """Returns the record of a failure with a fix: when the failure occurs, and which calls fixed it."""
    tool, cause = tool_name(failure.tool), cause_of(failure.message)
    other = failure.kind == "other_tool"
    what = instead(failures, failure) if other else changed(failures, failure)
    how = f"What to call in place of {tool}" if other else f"How to get {tool} to work"
    before = called_first(failures, failure)
    failed, success = failures.calls[failure.failed[-1]], failures.calls[failure.succeeded or 0]
    shape, task = _shape(success, failures), _task(run)
    wrong = _shape(failed, failures)
    name = _NAMES[failure.kind or "same_args_retry"].format(listed([item.path for item in failure.differences]))
    return ProcedureData(
        procedure_name=clean(f"{tool}: {name} after {cause.name}", 200),
        semantic_description=clean(
            f"{how} when it answers with {cause.name}, in a task like: {task}. "
            f"{_sentence(remedy_text(failure, before, what))}",
            STEP_CHARS,
        ),
        initial_failure_summary=_summary(failures, failure, cause),
        identified_root_cause=clean(_sentence(_root(failure, cause, before, what)), STEP_CHARS),
        successful_intervention=clean(_sentence(remedy_text(failure, before, what)), STEP_CHARS),
        learned_procedure_steps=_steps(failure, cause, before, what, shape),
        critical_contextual_cues=_cues(run, failure, cause),
        example_scenario_abstract=clean(
            f"Task: {task}. {tool} called with {wrong} answers with {cause.name}; "
            f"{what if other else 'it'} works when called with {shape}.",
            STEP_CHARS,
        ),
    )


def failure_lesson(run: StoredRun, failures: RunFailures, failure: Failure) -> ProcedureData:
    """Returns the record of a failure without a fix: a warning, which describes no fix."""
    tool, cause = tool_name(failure.tool), cause_of(failure.message)
    failed = failures.calls[failure.failed[-1]]
    shape = _shape(failed, failures)
    went_on = run.outcome == "success"
    return ProcedureData(
        procedure_name=clean(f"Avoid: {tool} with {cause.name}", 200),
        semantic_description=clean(
            f"Failure lesson: in a task like: {_task(run)}, {tool} answers with {cause.name}, "
            "and no later call of it in the run put that right.",
            STEP_CHARS,
        ),
        initial_failure_summary=_summary(failures, failure, cause),
        identified_root_cause=clean(
            f"{_sentence(_meaning(failure, cause))} What would have helped is not known.", STEP_CHARS
        ),
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
        critical_contextual_cues=["failure lesson", *_cues(run, failure, cause)],
        example_scenario_abstract=clean(
            f"Task: {_task(run)}. {tool} called with {shape} answers with {cause.name}"
            f"{f', {len(failure.failed)} times' if len(failure.failed) > 1 else ''}, and the run never gets past it.",
            STEP_CHARS,
        ),
    )


def _shape(call: Call, failures: RunFailures) -> str:
    """Returns the arguments of a call: statements with placeholders, other values where they are no data."""

    def shown(value: object, key: object) -> str:
        general = form_of(value, key, concrete=failures.concrete)
        return general if general.startswith("`") else told(str(key) or "input", value) or general

    return form(call.arguments, shown)


def _meaning(failure: Failure, cause: Cause) -> str:
    """Returns the meaning of the error, with its own words if they give no instruction."""
    message = quoted(failure.message) if failure.evidence in {"status", "output"} else ""
    return f'{cause.means} ("{message}")' if message else cause.means


def _task(run: StoredRun) -> str:
    """Returns the task with placeholders for the words that are values in any of the run's calls."""
    return trigger(run.task, run.calls, "abstract").rstrip(".!?…")


def _root(failure: Failure, cause: Cause, before: list[str], what: str) -> str:
    means = _meaning(failure, cause)
    if failure.kind == "other_tool":
        return f"{means}; {what} did what {tool_name(failure.tool)} was called for"
    if failure.kind == "same_args_retry":
        return f"{means}; the arguments were right, for the same call worked when it was repeated"
    if failure.kind == "same_args_after_other_tool":
        helper = listed(before) or "another call"
        return f"{means}; the arguments were right, and what was missing was done by {helper}"
    helpers = f", and what was right was found out with {listed(before)}" if before else ""
    return f"{means}; the arguments were at fault{helpers}"


def _steps(failure: Failure, cause: Cause, before: list[str], what: str, shape: str) -> list[str]:
    tool = tool_name(failure.tool)
    steps = [f"Call {name}." for name in before]
    if failure.kind == "same_args_retry":
        steps += [f"When {tool} answers with {cause.name}, repeat the call with the same arguments."]
        steps += ["Wait a little before each further repetition."] if cause.name in PASSING_CAUSES else []
    elif failure.kind == "other_tool":
        steps += [f"Call {what} with {shape}, in place of {tool}."]
    elif failure.kind == "same_args_after_other_tool":
        steps += [f"Call {tool} with {shape}."]
    else:
        steps += [f"Call {tool} with {shape}.", f"Check the arguments before the call; what put it right: {what}."]
    return [clean(step, STEP_CHARS) for step in steps]


def _summary(failures: RunFailures, failure: Failure, cause: Cause) -> str:
    message = quoted(failure.message)
    times = f", {len(failure.failed)} times" if len(failure.failed) > 1 else ""
    shape = _shape(failures.calls[failure.failed[-1]], failures)
    quote = f' It said: "{message}".' if message and failure.evidence in {"status", "output"} else ""
    return clean(f"{tool_name(failure.tool)} called with {shape} answered with {cause.name}{times}.{quote}", STEP_CHARS)


def _cues(run: StoredRun, failure: Failure, cause: Cause) -> list[str]:
    cues = [
        f"tool {tool_name(failure.tool)}",
        f"answer: {cause.name}",
        f"failure told by {_EVIDENCE_TEXT[failure.evidence]}",
    ]
    cues += [f"kind of fix: {failure.kind}"] if failure.kind else []
    cues += [f"argument {item.path} {item.change}" for item in failure.differences[:MOST_NAMED]]
    cues += [f"outcome of the whole run: {clean(run.outcome, 20)}"] if run.outcome != "success" else []
    return [clean(cue, 500) for cue in cues]


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
