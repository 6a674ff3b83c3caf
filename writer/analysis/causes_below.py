"""Finds the cause that an output names below a generic error, so that two causes are two failures.

An error is generic if its first line names no more than a class of failures: "Request failed with status code 403",
"Error", "exit code 1". The cause then stands in the body of an answer, or in a later line of the output.
"""

import re

from writer.analysis.error_output import SHORT_CHARS, both_ends, glimpse

_GENERIC = {
    "a", "an", "and", "api", "as", "at", "axioserror", "bad", "been", "body", "build", "by", "call", "caught",
    "client", "code", "command", "compilation", "conflict", "content", "could", "data", "details", "elifecycle",
    "entity", "err", "errno", "error", "errors", "exception", "exit", "exited", "external", "fail", "failed",
    "failure", "fatal", "for", "forbidden", "found", "from", "gateway", "got", "has", "have", "http", "httperror",
    "httpstatuserror", "in", "internal", "is", "message", "method", "near", "not", "npm", "null", "occurred", "of",
    "on", "operation", "process", "reported", "request", "response", "result", "returned", "run", "runtimeerror",
    "see", "server", "service", "status", "task", "the", "this", "tool", "unauthorized", "unexpected", "unknown",
    "unprocessable", "unsuccessful", "url", "was", "went", "what", "while", "with", "wrong", "zero",
}  # fmt: skip
"""Words that occur in the first lines of errors and name no cause."""
_URL = re.compile(r"\b\w{1,20}://\S+")
_WORD = re.compile(r"\w+")
_FIELD = re.compile(
    r"""(?im)["']?\b(?P<key>code|error_?code|type|error|message|error_?message|detail|reason|msg|description|title)["']?"""
    r"""(?:\s{0,3}[:=]\s{0,3}(?:"(?P<text>(?:[^"\\]|\\.){2,300})"|'(?P<other>(?:[^'\\]|\\.){2,300})')"""
    r"""|\n(?P<line>[^\n]{2,300})$)"""
)
"""Pattern of a field of an answer's body that may name the cause: in JSON, as a printed object, or on two lines."""
_CODES = frozenset(("code", "errorcode", "type"))
_MARKED = re.compile(r"^\W{0,2}(?:fatal|npm (?:ERR!|error)|E  |Caused by|[\w.$]{0,60}(?:Error|Exception))(?::|\s)")
"""Pattern of a line that a program marks as its error."""


def is_generic(line: str) -> bool:
    """Returns whether a line of an error names no cause."""
    words = _WORD.findall(_URL.sub(" ", line[:SHORT_CHARS].partition("{")[0]))
    return all(word.casefold() in _GENERIC or any(map(str.isdigit, word)) for word in words)


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
    lines = (line.strip() for line in reversed(both_ends(text).splitlines()) if _MARKED.search(line))
    return next((line for line in lines if not is_generic(line)), "")[:SHORT_CHARS]


def _in_fields(text: str) -> str:
    """Returns the code and the message in an answer's body that name a cause; empty: none does."""
    codes, messages = list[str](), list[str]()
    for match in _FIELD.finditer(text.replace('\\"', '"')):
        value = (match["text"] or match["other"] or match["line"]).replace("\\n", " ")
        if not is_generic(value):
            (codes if match["key"].casefold().replace("_", "") in _CODES else messages).append(value)
    return ": ".join(dict.fromkeys([*codes[:1], *messages[:1]]))
