"""The steps of a script: which calls of a run are worth repeating, each written as tool, argument names and types.

Nothing of a tool's output becomes part of a step. Where an output gives its reader an instruction, the tools that it
names become no steps, and its words no examples.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, islice

import orjson

from retrieval.tables.kinds import AbstractionLevel
from writer.analysis.calls import Call
from writer.analysis.causes import instructs
from writer.analysis.error_output import LOOK_CHARS, MOST_KEYS, glimpse
from writer.analysis.failures import statement_of
from writer.analysis.placeholders import clean, form, form_of
from writer.analysis.remedy import tool_name
from writer.analysis.state_changes import changes_state
from writer.analysis.statements import language_of, tokens
from writer.nested import parts

MOST_STEPS = 30
EACH_VALUE = "Once for each value, in the order of the task"
"""Of calls of one form whose values are not shown."""
MOST_TOGETHER = 8
"""Calls of one form that are one step with all of their values."""
STEP_CHARS = 1_000
EXAMPLE_CHARS = 60
STATEMENT_CHARS = 200

_EXAMPLE = re.compile(r" \(for example:? (?:`[^`]*`(?:, then `[^`]*`)*|[^)]*)\)")
_WORD = re.compile(r"[^\s\"'(),:;{}\[\]<>=]{3,60}")


def worth_repeating(calls: Sequence[Call], task: str) -> list[Call]:
    """Returns the calls that did the work, in their order: none that failed, none twice.

    Calls that only look something up stay where nothing else was done, or where a later call of the rest has a value
    that they answered and that was not known before; so do those whose output is missing or too long to look through.
    """
    done = list(_first_of_equals(_not_injected(calls)))
    if not any(changes_state(call.tool) for call in done):
        return done
    needed: set[str] = set()
    kept = []
    for call in reversed(done):
        own = _words(call.given)
        if changes_state(call.tool) or _answered(call, needed - own):
            kept.append(call)
            needed |= own - set(_WORD.findall(task))
    return kept[::-1]


def steps_of(calls: Sequence[Call], level: AbstractionLevel) -> list[str]:
    """Returns the calls as steps, at most MOST_STEPS.

    Calls of one form in a row are one step where it loses nothing: with the values that its placeholders stand for in
    their order, or without any value. A concrete script has no placeholder, and so a step for each call.
    """
    steps: list[str] = []
    injected = _injected_words(calls)
    for _, group in groupby(calls, key=_form):
        row = list(group)
        if level == "abstract":
            steps.append(_step(row, level, injected))
        else:
            steps += _with_values(row, level, injected)
    if len(steps) > MOST_STEPS:
        rest = len(steps) - MOST_STEPS + 1
        return [*steps[: MOST_STEPS - 1], f"Go on in the same way; {rest} more steps followed."]
    return steps


def _with_values(row: Sequence[Call], level: AbstractionLevel, injected: set[str]) -> Iterator[str]:
    """Yields the steps of calls of one form: MOST_TOGETHER a step, or one each where their values are too long."""
    for start in range(0, len(row), MOST_TOGETHER):
        some = row[start : start + MOST_TOGETHER]
        together = "" if level == "concrete" else _step(some, level, injected)
        if 0 < len(together) < STEP_CHARS:
            yield together
        else:
            yield from (_step([call], level, injected) for call in some)


def _step(row: Sequence[Call], level: AbstractionLevel, injected: set[str]) -> str:
    """Returns one step for calls of one form."""
    given, again = _arguments(row, level, injected), ""
    if len(row) > 1:
        listed = given != _arguments(row[:1], level, injected)
        again = " Once for each, in this order." if listed else f" {EACH_VALUE}: {len(row)} here."
    return clean(f"Call {tool_name(row[0].tool)} with {given}.{again}", STEP_CHARS)


def called(call: Call, level: AbstractionLevel) -> str:
    """Returns one call in words: its tool and its arguments at this level."""
    return f"{tool_name(call.tool)} called with {_arguments([call], level, _instruction_words(call))}"


def without_examples(step: str) -> str:
    """Returns the step with its placeholders alone."""
    return _EXAMPLE.sub("", step)


def task_type(calls: Sequence[Call]) -> str:
    """Returns what kind of work the calls do: what the last statement does, or the last tool that changes something."""
    changing = [call for call in calls if changes_state(call.tool)]
    statement = next((text for call in reversed(changing) if (text := statement_of(call.given))), "")
    language = language_of(statement)
    if language is None:
        return tool_name((changing or calls)[-1].tool) if calls else ""
    known = (token.text for token in tokens(statement, language)[:2] if token.text == token.shown)
    return " ".join(known).casefold()


def _not_injected(calls: Sequence[Call]) -> Iterator[Call]:
    """Yields the successful calls, except of tools that an earlier output told the agent to call."""
    injected: set[str] = set()
    for call in calls:
        if call.failure is None and call.tool.strip() and call.tool.casefold() not in injected:
            yield call
        injected |= _instruction_words(call)


def _injected_words(calls: Sequence[Call]) -> set[str]:
    return set().union(*map(_instruction_words, calls))


def _instruction_words(call: Call) -> set[str]:
    """Returns the words of the output if it gives its reader an instruction, otherwise none."""
    text = glimpse(call.output)
    return {word.casefold().strip(".!?") for word in _WORD.findall(text)} if instructs(text) else set()


def _first_of_equals(calls: Iterator[Call]) -> Iterator[Call]:
    seen = set()
    for call in calls:
        key = call.tool, _canonical(call.given)
        if key not in seen:
            seen.add(key)
            yield call


def _canonical(given: object) -> bytes:
    try:
        return orjson.dumps(given, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:  # lone surrogates, or integers over 64 bits
        return repr(given).encode(errors="replace")


def _answered(call: Call, needed: set[str]) -> bool:
    """Returns whether the output holds a needed word, or is longer than what is looked at, or is not there."""
    if call.output is None:
        return True
    text = glimpse(call.output)
    return len(text) >= LOOK_CHARS or not needed.isdisjoint(_WORD.findall(text))


def _words(given: object) -> set[str]:
    """Returns the words of the values in a call's arguments, those of its first texts and numbers."""
    plain = (part for part in parts(given, widest=MOST_KEYS) if not isinstance(part, dict | list))
    return set(_WORD.findall(glimpse(list(islice(plain, MOST_KEYS)))))


def _form(call: Call) -> tuple[str, str]:
    return call.tool, form(call.given)


def _arguments(row: Sequence[Call], level: AbstractionLevel, injected: set[str]) -> str:
    """Returns the arguments of calls of one form; an example has what its placeholder stands for in each, in order."""
    first = row[0].given
    if level == "abstract":
        return form(first)
    if not isinstance(first, dict):
        return form(first, lambda _, key: _shown([call.given for call in row], key, level, injected))
    each = (list(call.given.values()) for call in row if isinstance(call.given, dict))
    columns = zip(*each, strict=False)  # calls of one form have their arguments in the same places
    shown = {key: _shown(values, key, level, injected) for key, values in zip(first, columns, strict=False)}
    return form(shown, lambda text, _: str(text))


def _shown(values: Sequence[object], key: object, level: AbstractionLevel, injected: set[str]) -> str:
    """Returns a placeholder with an example, or the example alone; the placeholder alone where nothing may be shown."""
    general, examples = form_of(values[0], key), [_example(value, key, injected) for value in values]
    if level == "concrete":
        return examples[0] or general
    if all(example in (None, general) for example in examples):
        return general
    each = [example or general for example in examples]
    return f"{general} (for example {', then '.join(each if len(set(each)) > 1 else each[:1])})"


def _example(value: object, key: object, injected: set[str]) -> str | None:
    """Returns a plain value as it was; None for one that is long or nested, or may instruct its reader."""
    if isinstance(value, bool) or value is None or not isinstance(value, str | int | float):
        return None
    text = value.strip() if isinstance(value, str) else glimpse(value)
    if isinstance(value, str) and (language := language_of(value, key)):
        longest, said, quote = STATEMENT_CHARS, text.partition(" ")[2], "`"  # its verb instructs no reader
        text = text if language == "sql" else form_of(text, key, concrete=True).strip("`")
    else:
        longest, said, quote = EXAMPLE_CHARS, text, ""
    words = {word.casefold() for word in _WORD.findall(said)}
    if not text or len(text) > longest or instructs(said) or (words and words <= injected):
        return None
    return f"{quote}{clean(text, longest)}{quote}"
