"""Finds the cause that an output names below a generic error, so that two causes are two failures.

An error is generic if its first line names no more than a class of failures: "Request failed with status code 403",
"Error", "exit code 1". The cause then stands in the body of an answer, or in a later line of the output.
"""

from retrieval.patterns import patterns, word_sets
from writer.analysis.error_output import SHORT_CHARS, both_ends, glimpse

_FORMS = patterns("writer.analysis", "causes_below")
_WORDS = word_sets("writer.analysis", "causes_below")
_CODES = frozenset(("code", "errorcode", "type"))


def is_generic(line: str) -> bool:
    """Returns whether a line of an error names no cause."""
    words = _FORMS["word"].findall(_FORMS["url"].sub(" ", line[:SHORT_CHARS].partition("{")[0]))
    return all(word.casefold() in _WORDS["generic"] or any(map(str.isdigit, word)) for word in words)


def with_cause(error: str, output: object) -> str:
    """Returns an error; to a generic error, the cause that the output names is added."""
    first = next((line for line in error.splitlines() if line.strip()), "")
    if not is_generic(first):
        return error
    text = both_ends(output) if isinstance(output, str) else glimpse(output)
    cause = _in_fields(text)
    if not cause and isinstance(output, str):
        rest = [line.strip() for line in text.splitlines() if not is_generic(line)]
        cause = marked_line(text) or (rest[0] if rest and len(text) <= SHORT_CHARS else "")
    named = first.partition("{")[0].strip(" :.")
    return f"{named}: {cause}"[:SHORT_CHARS] if cause else error


def marked_line(text: str) -> str:
    """Returns the last line that a program marks as its error and that names a cause; empty: there is no such line."""
    lines = (line.strip() for line in reversed(both_ends(text).splitlines()) if _FORMS["marked"].search(line))
    return next((line for line in lines if not is_generic(line)), "")[:SHORT_CHARS]


def _in_fields(text: str) -> str:
    """Returns the code and the message in an answer's body that name a cause; empty: none does."""
    codes, messages = list[str](), list[str]()
    for match in _FORMS["field"].finditer(text.replace('\\"', '"')):
        value = (match["text"] or match["other"] or match["line"]).replace("\\n", " ")
        if not is_generic(value):
            (codes if match["key"].casefold().replace("_", "") in _CODES else messages).append(value)
    return ": ".join(dict.fromkeys([*codes[:1], *messages[:1]]))
