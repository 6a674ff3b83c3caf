"""The steps of a script: the calls of a run that are worth repeating, each as a tool, names of arguments and types.

A step contains no part of a tool's output. If an output gives its reader an instruction, the tools that it names do not
become steps, and its words do not become examples.
"""

import json
import re
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby, islice

from retrieval.tables.kinds import AbstractionLevel
from writer.analysis.call_changes import changes
from writer.analysis.calls import Call
from writer.analysis.causes import instructs
from writer.analysis.error_output import LOOK_CHARS, MOST_KEYS, glimpse
from writer.analysis.placeholders import clean, form, form_of
from writer.analysis.remedy import tool_name
from writer.analysis.state_changes import changes_state
from writer.analysis.statements import language_of, statement_of, tokens
from writer.nested import parts

MOST_STEPS = 30
EACH_VALUE = "Once for each value, in the order of the task"
"""Ending of a step that combines several calls of the same form, without their values."""
MOST_TOGETHER = 8
"""Maximum number of calls of the same form that one step combines with all their values."""
STEP_CHARS = 1_000
EXAMPLE_CHARS = 60
STATEMENT_CHARS = 200

_EXAMPLE = re.compile(r" \(for example:? (?:`[^`]*`(?:, then `[^`]*`)*|(?:[^()]|\([^()]*\))*|[^)]*)\)")
"""Pattern of examples: statements in backticks, or other values, which may have parentheses of their own."""
_WORD = re.compile(r"[^\s\"'(),:;{}\[\]<>=]{3,60}|[A-Za-z]\d")


def worth_repeating(calls: Sequence[Call], task: str, replaced: Collection[int]) -> list[Call]:
    """Returns the calls of a run that did the work, in order; failed, repeated and injected calls are left out.

    So are the calls of the indices ``replaced``: a later call did what they should have done.

    A call that only looks something up is kept if the run made no other calls, if a later kept call uses a new value
    from its output, or if its output is missing or too long to search.
    """
    done = list(_successes(calls, replaced))
    changing = {call.index for call in done if changes(call)}
    if not changing:
        return done
    needed: set[str] = set()
    in_task = set(_WORD.findall(task))
    kept = []
    for call in reversed(done):
        plain = (part for part in parts(call.arguments, widest=MOST_KEYS) if not isinstance(part, dict | list))
        own = set(_WORD.findall(glimpse(list(islice(plain, MOST_KEYS)))))
        text = "" if call.output is None else glimpse(call.output)
        unclear = call.output is None or len(text) >= LOOK_CHARS
        supplies = any(word in needed and word not in own for word in _WORD.findall(text))
        if call.index in changing or unclear or supplies:
            kept.append(call)
            needed |= own - in_task
    return kept[::-1]


def steps_of(calls: Sequence[Call], level: AbstractionLevel) -> list[str]:
    """Returns the calls as steps of a script, at most MOST_STEPS.

    At the abstract level, consecutive calls of the same form are one step without values. At the hybrid level, a step
    has up to MOST_TOGETHER of them with a list of their values in order, or one call if the values are long. At the
    concrete level, each call is a step.
    """
    steps: list[str] = []
    injected = set().union(*map(_instruction_words, calls))
    for _, group in groupby(calls, key=lambda call: (call.tool, form(call.arguments))):
        row = list(group)
        if level == "abstract":
            steps.append(_step(row, level, injected))
            continue
        for start in range(0, len(row), MOST_TOGETHER):
            some = row[start : start + MOST_TOGETHER]
            together = "" if level == "concrete" else _step(some, level, injected)
            fits = 0 < len(together) < STEP_CHARS
            steps += [together] if fits else [_step([call], level, injected) for call in some]
    if len(steps) > MOST_STEPS:
        rest = len(steps) - MOST_STEPS + 1
        return [*steps[: MOST_STEPS - 1], f"Go on in the same way; {rest} more steps followed."]
    return steps


def _step(row: Sequence[Call], level: AbstractionLevel, injected: set[str]) -> str:
    """Returns one step for calls of one form."""
    arguments, again = _arguments(row, level, injected), ""
    if len(row) > 1:
        listed = arguments != _arguments(row[:1], level, injected)
        again = " Once for each, in this order." if listed else f" {EACH_VALUE}: {len(row)} here."
    return clean(f"Call {tool_name(row[0].tool)} with {arguments}.{again}", STEP_CHARS)


def called(call: Call, level: AbstractionLevel) -> str:
    """Returns a description of one call: its tool, and its arguments at this level of abstraction."""
    return f"{tool_name(call.tool)} called with {_arguments([call], level, _instruction_words(call))}"


def without_examples(step: str) -> str:
    """Returns a step without examples, as in ``<id> (for example 7)``, so that steps with other examples are equal."""
    return _EXAMPLE.sub("", step)


def task_type(calls: Sequence[Call]) -> str:
    """Returns the kind of work of the calls: the verb of the last statement, or the last tool that changes state."""
    changing = [call for call in calls if changes_state(call.tool)]
    statement = next((text for call in reversed(changing) if (text := statement_of(call.arguments))), "")
    language = language_of(statement)
    if language is None:
        return tool_name((changing or calls)[-1].tool) if calls else ""
    known = (token.text for token in tokens(statement, language)[:2] if token.text == token.shown)
    return " ".join(known).casefold()


def _successes(calls: Sequence[Call], replaced: Collection[int]) -> Iterator[Call]:
    """Yields the calls that were not replaced and worked, without repeats and without calls that an output asked for.

    A call that changes something is no repeat if another change came between and no call of the run failed.
    """
    injected: set[str] = set()
    looked_up: set[tuple[str, str]] = set()
    changed: set[tuple[str, str]] = set()
    retries = bool(replaced) or any(call.failed for call in calls)
    for call in calls:
        tool, failed = call.tool.casefold(), call.failed or call.index in replaced
        if tool.strip() and not failed and tool not in injected:
            made = call.tool, json.dumps(call.arguments, sort_keys=True, default=str)
            if made not in looked_up and made not in changed:
                changing = changes(call)
                if changing and not retries:
                    changed.clear()
                (changed if changing else looked_up).add(made)
                yield call
        if call.index not in replaced:
            injected |= _instruction_words(call)


def _instruction_words(call: Call) -> set[str]:
    """Returns the words of the output if it gives its reader an instruction, else an empty set."""
    text = glimpse(call.output)
    return {word.casefold().strip(".!?") for word in _WORD.findall(text)} if instructs(text) else set()


def _arguments(row: Sequence[Call], level: AbstractionLevel, injected: set[str]) -> str:
    """Returns the arguments of calls of one form; a placeholder lists the value of each call as examples, in order."""
    first = row[0].arguments
    if level == "abstract":
        return form(first)
    if not isinstance(first, dict):
        return form(first, lambda _, key: _shown([call.arguments for call in row], key, level, injected))
    each = (list(call.arguments.values()) for call in row if isinstance(call.arguments, dict))
    columns = zip(*each, strict=False)  # calls of one form have their arguments in the same places
    shown = {key: _shown(values, key, level, injected) for key, values in zip(first, columns, strict=False)}
    return form(shown, lambda text, _: str(text))


def _shown(values: Sequence[object], key: object, level: AbstractionLevel, injected: set[str]) -> str:
    """Returns the placeholder with examples, at the concrete level the value; the placeholder if no value is safe."""
    general, examples = form_of(values[0], key), [_example(value, key, injected) for value in values]
    if level == "concrete":
        return examples[0] or general
    if all(example in (None, general) for example in examples):
        return general
    each = [example or general for example in examples]
    return f"{general} (for example {', then '.join(each if len(set(each)) > 1 else each[:1])})"


def _example(value: object, key: object, injected: set[str]) -> str | None:
    """Returns a value as an example; None for a value that is long or nested, or that may instruct its reader."""
    if isinstance(value, bool) or value is None or not isinstance(value, str | int | float):
        return None
    text = value.strip() if isinstance(value, str) else glimpse(value)
    if isinstance(value, str) and (language := language_of(value, key)):
        longest, prose, quote = STATEMENT_CHARS, text.partition(" ")[2], "`"  # its verb instructs no reader
        text = text if language == "sql" else form_of(text, key, concrete=True).strip("`")
    else:
        longest, prose, quote = EXAMPLE_CHARS, text, ""
    words = {word.casefold() for word in _WORD.findall(prose)}
    if not text or len(text) > longest or instructs(prose) or (words and words <= injected):
        return None
    return f"{quote}{clean(text, longest)}{quote}"
