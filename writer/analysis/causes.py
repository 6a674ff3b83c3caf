"""Causes of errors, a fixed list in ``causes.toml``, and quotations of an error that contain no instruction.

The advice of a lesson contains only these causes. Words of a tool's output appear only in such quotations: in the
summary and the cause of a failure, and in a revision's note on a failed run.
"""

from dataclasses import dataclass
from typing import Protocol

import re2

from retrieval.patterns import patterns, read
from writer.analysis.error_output import beginning
from writer.analysis.placeholders import abstract

QUOTE_CHARS = 160


class _Pattern(Protocol):
    """The part of an RE2 expression that is used here; RE2 ships no types."""

    def search(self, text: str) -> object | None:
        """Returns the first match in the text; None: there is none."""


@dataclass(frozen=True, slots=True)
class Cause:
    """A class of errors.

    Attributes:
        name: name of the class with its article, as in "answered with a syntax error".
        means: the explanation of the class, which lessons quote.
    """

    name: str
    means: str
    pattern: _Pattern


_READ = read("writer.analysis", "causes.toml")
_CAUSES = [Cause(**each | {"pattern": re2.compile(rf"(?i){each['pattern']}")}) for each in _READ["causes"]]
OTHER = Cause("an error", "the tool reported an error", re2.compile(""))


def cause_of(message: str) -> Cause:
    """Returns the class of the error that a message reports: the first class whose pattern matches, or OTHER."""
    quotation = quoted(message)
    return next((cause for cause in _CAUSES if cause.pattern.search(quotation)), OTHER)


_FORMS = patterns("writer.analysis", "causes")


def instructs(text: str) -> bool:
    """Returns whether a text gives its reader an instruction; true in doubt, so that less is told."""
    return _FORMS["instructs"].search(beginning(text, len(text))) is not None


def quoted(message: str) -> str:
    """Returns the first line of an error, with placeholders, up to the first sentence that gives an instruction.

    The result is empty if the first sentence gives an instruction.
    """
    line = next((text for text in message.splitlines() if text.strip()), "")
    kept, _ = parted(line[: 2 * QUOTE_CHARS])
    return abstract(" ".join(kept)[:QUOTE_CHARS]).strip(" .:;,")


def parted(line: str) -> tuple[list[str], list[str]]:
    """Splits a line into the sentences before the first instruction, and the other sentences."""
    sentences = _FORMS["sentence"].split(line)
    for place, sentence in enumerate(sentences):
        label, _, rest = sentence.partition(":")
        if instructs(sentence) or instructs(rest.strip()) or instructs(label):
            return sentences[:place], sentences[place:]
    return sentences, []
