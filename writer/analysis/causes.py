"""Causes of errors, a fixed list in ``causes.toml``, and quotations of an error that contain no instruction.

To a generic error, one whose first line names no more than a class of failures ("Request failed with status code 403",
"exit code 1"), the cause is added that stands in the body of an answer, or in a later line of the output, so that two
causes are two failures.

The advice of a lesson contains only these causes. Words of a tool's output appear only in such quotations: in the
summary and the cause of a failure, and in a revision's note on a failed run.
"""

import re
from dataclasses import dataclass
from itertools import pairwise

import re2

from retrieval.patterns import patterns, read, word_sets
from writer.analysis.error_output import SHORT_CHARS, beginning, both_ends, glimpse
from writer.analysis.placeholders import abstract

QUOTE_CHARS = 160
_FORMS = patterns("writer.analysis", "causes")
_WORDS = word_sets("writer.analysis", "causes")
_CODES = frozenset(("code", "errorcode", "type"))


@dataclass(frozen=True, slots=True)
class Cause:
    """A class of errors.

    Attributes:
        name: name of the class with its article, as in "answered with a syntax error".
        means: the explanation of the class, which lessons quote.
    """

    name: str
    means: str
    pattern: re.Pattern[str]


_READ = read("writer.analysis", "causes.toml")
_CAUSES = [Cause(**each | {"pattern": re2.compile(rf"(?i){each['pattern']}")}) for each in _READ["causes"]]
OTHER = Cause("an error", "the tool reported an error", re2.compile(""))


def cause_of(message: str) -> Cause:
    """Returns the class of the error that a message reports: the first class whose pattern matches, or OTHER."""
    quotation = quoted(message)
    return next((cause for cause in _CAUSES if cause.pattern.search(quotation)), OTHER)


def instructs(text: str) -> bool:
    """Returns whether a text gives its reader an instruction; true in doubt, so that less is told."""
    return _FORMS["instructs"].search(beginning(text, len(text))) is not None


def quoted(message: str) -> str:
    """Returns the first line of an error, with placeholders, up to the first sentence that gives an instruction.

    The result is empty if the first sentence gives an instruction.
    """
    line = next((text for text in message.splitlines() if text.strip()), "")
    kept, _ = parted(_FORMS["package"].sub("", line[: 2 * QUOTE_CHARS]))
    spaced = (each if before + each in line else f" {each}" for before, each in pairwise(["", *kept]))
    return abstract("".join(spaced)[:QUOTE_CHARS]).strip(" .:;,")


def parted(line: str) -> tuple[list[str], list[str]]:
    """Splits a line into the sentences before the first instruction, and the other sentences."""
    sentences = _FORMS["sentence"].split(line)
    for place, sentence in enumerate(sentences):
        label, _, rest = sentence.partition(":")
        if instructs(sentence) or instructs(rest.strip()) or instructs(label):
            return sentences[:place], sentences[place:]
    return sentences, []


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
