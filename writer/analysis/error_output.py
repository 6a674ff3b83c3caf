"""Recognises tool outputs that report an error, whatever the status of the call is.

Only the beginning of an output (and its end) is read, so that the cost of a call does not grow with its output. RE2
runs the patterns in linear time.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import orjson

from retrieval.patterns import patterns, word_sets
from writer.analysis.state_changes import changes_state
from writer.nested import parts

LOOK_CHARS = 2_000
LOOK_JSON_CHARS = 8_000
"""Maximum characters of a text that is parsed as JSON; of a longer text only the beginning is searched."""
SHORT_CHARS = 300
"""Maximum characters of a text in which a phrase such as "not found" counts as an error; longer texts may quote it."""
MOST_KEYS = 100
MOST_DEPTH = 4
FEWEST_CHARS = 3
LARGEST = 10**18

_FORMS = patterns("writer.analysis", "error_output")
_WORDS = word_sets("writer.analysis", "error_output")
TRACEBACK = "Traceback (most recent call last)"
CAUSE = "Caused by: "

_MESSAGE_KEYS = ("message", "error_message", "detail", "details", "reason", "msg", "description", "title", "stderr")
_NOTHING = {"", "none", "null", "nil", "false", "0", "no", "no error", "ok", "n/a", "-"}


def beginning(text: str, longest: int) -> str:
    """Returns the beginning of a text, with question marks for lone surrogates, which cannot be encoded."""
    return text[:longest].encode(errors="replace").decode()


def both_ends(text: str) -> str:
    """Returns a text of up to twice LOOK_CHARS; of a longer text, LOOK_CHARS of the beginning and of the end.

    The end begins with a whole line, if it contains one.
    """
    if len(text) <= 2 * LOOK_CHARS:
        return beginning(text, 2 * LOOK_CHARS)
    end = beginning(text[-LOOK_CHARS:], LOOK_CHARS)
    _, _, whole_lines = end.partition("\n")
    return f"{beginning(text, LOOK_CHARS)}\n{whole_lines or end}"


def error_in(output: object, tool: str = "") -> str | None:
    """Returns the beginning of the error that an output reports; None: it reports no error.

    What a tool that looks something up tells about a thing's failure, as in ``get_job``, is data and no error.
    """
    return _in_value(output, 0, "" if changes_state(tool) else tool)


def is_silent(output: object) -> bool:
    """Returns whether a call's output is missing or blank, which shows neither success nor failure."""
    return output is None or (isinstance(output, str) and not output[:LOOK_CHARS].strip())


def says_not_yet(output: object) -> bool:
    """Returns whether a short output says that a problem persists ("no signal"), without being an error."""
    return (
        isinstance(output, str)
        and len(output) <= SHORT_CHARS
        and _FORMS["not_yet"].search(beginning(output, SHORT_CHARS)) is not None
    )


def exception_in(text: str) -> str:
    """Returns the exception of a text's last traceback, its first line without indent; else TRACEBACK."""
    after = text[text.rindex(TRACEBACK) :].splitlines()[1:]
    return next((line for line in after if line and not line[0].isspace()), TRACEBACK)[:SHORT_CHARS]


def glimpse(value: object) -> str:
    """Returns the texts, numbers and names of fields in a value, each on a line, up to LOOK_CHARS characters."""
    return "\n".join(_leaves(value))[:LOOK_CHARS]


def texts_in(arguments: object) -> set[str]:
    """Returns the texts and numbers in the arguments of a call that have at least FEWEST_CHARS characters."""
    return {text for text in _leaves(arguments) if len(text) >= FEWEST_CHARS}


def _leaves(value: object) -> Iterator[str]:
    """Yields the texts and numbers among the first MOST_KEYS values, until they have LOOK_CHARS together."""
    chars = 0
    for item in islice(parts(value, keys=True, widest=MOST_KEYS), MOST_KEYS):
        if isinstance(item, str | int | float) and not isinstance(item, bool):
            # Python refuses to write an integer of thousands of digits
            digits = "" if isinstance(item, str) or abs(item) >= LARGEST else repr(item)
            text = beginning(item, LOOK_CHARS) if isinstance(item, str) else digits
            chars += len(text)
            yield text
        if chars >= LOOK_CHARS:
            return


def _in_value(value: object, depth: int, lookup: str) -> str | None:
    """Returns the error in a value; ``lookup`` is the name of a tool that only looks something up, else empty."""
    if depth > MOST_DEPTH:
        return None
    if isinstance(value, str):
        return _in_string(value, depth, lookup)
    if isinstance(value, Mapping):
        return _in_mapping(value, depth, lookup)
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return _in_parts(value, depth, lookup)
    return None


def _in_string(text: str, depth: int, lookup: str) -> str | None:
    head = beginning(text, LOOK_CHARS).lstrip()
    if not head.startswith(("{", "[")):
        is_report = "\n" in head.rstrip() and _FORMS["reports"].search(lookup)
        return None if is_report else _in_text(text, head)
    if len(text) <= LOOK_JSON_CHARS:
        try:
            return _in_value(orjson.loads(text), depth + 1, lookup)
        except (orjson.JSONDecodeError, UnicodeError):
            pass
    short = head[:SHORT_CHARS]
    return short if _FORMS["cut_json"].match(short) or _FORMS["cut_flag"].search(short) else _in_text(text, head)


def _in_text(text: str, head: str) -> str | None:
    head = _FORMS["echo"].sub("", head, count=1)
    first = head.split("\n", 1)[0][:SHORT_CHARS]
    if _FORMS["no_error"].search(first):
        return None
    if (_FORMS["begins"].search(first) and TRACEBACK not in first) or _FORMS["first_line"].search(first):
        return _cause_in(text) or head[:SHORT_CHARS]
    if TRACEBACK in head:
        return exception_in(both_ends(text))
    if len(head) <= SHORT_CHARS and (_FORMS["short"].search(head) or _FORMS["bare"].search(first)):
        return head
    if exited := _FORMS["exit"].search(f"{head[:SHORT_CHARS]}\n{beginning(text[-SHORT_CHARS:], SHORT_CHARS)}"):
        return str(exited.group())
    return None


def _cause_in(text: str) -> str:
    """Returns the innermost cause that a Java stack trace tells of, or an empty text."""
    causes = [line for line in both_ends(text).splitlines() if line.startswith(CAUSE)]
    return causes[-1].removeprefix(CAUSE)[:SHORT_CHARS] if causes else ""


def _in_mapping(value: Mapping[object, object], depth: int, lookup: str) -> str | None:
    fields = {str(key)[:40].casefold(): item for key, item in islice(value.items(), MOST_KEYS)}
    for key in fields.keys() & _WORDS["error_keys"]:
        error = fields[key]  # a bare number may be a measure
        if isinstance(error, list) and key in lookup.casefold():  # ``list_errors`` lists errors
            continue
        reported = isinstance(error, str) and error[:40].strip().casefold() not in _NOTHING
        if reported or error is True or (isinstance(error, Mapping | list) and error):
            return _text_of(error)
    if not _is_flagged(fields, lookup):
        return _in_wrapped(fields, depth, lookup)
    content = fields["content"] if isinstance(fields.get("content"), list) else None
    message = next((fields[key] for key in _MESSAGE_KEYS if fields.get(key)), content)
    return _text_of(message) if message is not None else "reported as failed"


def _is_flagged(fields: Mapping[str, object], lookup: str) -> bool:
    """Returns whether a flag, a status or an exit code among the fields reports a failure.

    The status and the exit code of a thing that a tool looked up report none.
    """
    if any(fields.get(key) is False for key in _WORDS["flags"]) or any(
        fields.get(key) is True for key in _WORDS["bad_flags"]
    ):
        return True
    if lookup and _is_about_thing(fields, lookup):
        return False
    codes = (fields.get(key) for key in _WORDS["status_keys"])
    if any(isinstance(code, int) and 400 <= code < 600 for code in codes):  # noqa: PLR2004 - HTTP's own numbers
        return True
    if any(isinstance(fields.get(key), int) and fields[key] not in (0, False) for key in _WORDS["exit_keys"]):
        return True
    status = fields.get("status")
    explained = any(fields.get(key) for key in _MESSAGE_KEYS)
    return isinstance(status, str) and (
        status.casefold() == "error" or (explained and status.casefold() in {"failed", "failure", "fail", "fehler"})
    )


def _is_about_thing(fields: Mapping[str, object], lookup: str) -> bool:
    """Returns whether fields describe a thing: they have its id, or data of it and no text about a failed call."""
    if any(key == "id" or key.endswith("_id") for key in fields.keys() - _WORDS["answer_ids"]):
        return True
    data = fields.keys() - _WORDS["status_keys"] - _WORDS["exit_keys"]
    if _FORMS["watches"].search(lookup):
        return bool(data.difference(_MESSAGE_KEYS))
    return bool(data) and data.isdisjoint({*_MESSAGE_KEYS, *_WORDS["carries"]})


def _in_wrapped(fields: Mapping[str, object], depth: int, lookup: str) -> str | None:
    if len(fields) == 1 and (only := fields.get("detail", fields.get("message"))) is not None:
        return _in_value(only, depth + 1, lookup) if isinstance(only, str) else None
    for key in sorted(fields.keys() & _WORDS["wrappers"]):
        if (message := _in_value(fields[key], depth + 1, lookup)) is not None:
            return message
    content = fields.get("content")
    return _in_parts(content, depth + 1, lookup) if isinstance(content, list) else None


def _in_parts(message: Sequence[object], depth: int, lookup: str) -> str | None:
    """Returns the error in the first part of a message; None for a list of over MOST_DEPTH items, which is data."""
    if not message or len(message) > MOST_DEPTH:
        return None
    first = message[0]
    if isinstance(first, Mapping) and first.get("type") == "text":
        return _in_value(first.get("text"), depth + 1, lookup)
    return _in_value(first, depth + 1, lookup) if len(message) == 1 and isinstance(first, str) else None


def _text_of(value: object) -> str:
    """Returns the text of an error that may be nested in lists and objects; "an error" without a text."""
    for _ in range(MOST_DEPTH):
        if isinstance(value, list) and value:
            value = value[0]
        elif isinstance(value, Mapping):
            fields = {str(key)[:40].casefold(): item for key, item in islice(value.items(), MOST_KEYS)}
            value = next((fields[key] for key in (*_MESSAGE_KEYS, "text", "code") if fields.get(key)), "an error")
    if not isinstance(value, str):
        return "an error"
    if TRACEBACK in value[:LOOK_CHARS]:
        return exception_in(both_ends(value))
    return _cause_in(value) or value[:SHORT_CHARS]
