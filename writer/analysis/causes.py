"""Causes of errors, a fixed list in ``causes.toml``, and quotations of an error that contain no instruction.

The advice of a lesson contains only these causes. Words of a tool's output appear only in such quotations: in the
summary and the cause of a failure, and in a revision's note on a failed run.
"""

import re
import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Protocol

import re2

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


_READ = tomllib.loads(files("writer.analysis").joinpath("causes.toml").read_text(encoding="utf-8"))
_CAUSES = [Cause(**each | {"pattern": re2.compile(rf"(?i){each['pattern']}")}) for each in _READ["causes"]]
OTHER = Cause("an error", "the tool reported an error", re2.compile(""))


def cause_of(message: str) -> Cause:
    """Returns the class of the error that a message reports: the first class whose pattern matches, or OTHER."""
    quotation = quoted(message)
    return next((cause for cause in _CAUSES if cause.pattern.search(quotation)), OTHER)


_SENTENCE = re.compile(r"(?<=[.!?;\u3002!?])\s*(?=[^\s\d])|\s[|\u2013\u2014]\s|\s-{2,}\s|<|\*\*|#{2,}|\[INST|```")
_INSTRUCTS = re2.compile(
    r"(?i)\b(?:ignore|disregard|forget|override|bypass)\b|\b(?:previous|prior|above|earlier|system"
    r"|new) (?:instruction|prompt|rule|message)"
    r"|\bsystem prompt\b|\binstructions?\b|\b(?:system|assistant|user|developer|human|important|note|attention"
    r"|hint|tip|action required)\s?:"
    r"|\b(?:you|agent|assistant|model|ai)\b.{0,20}\b(?:must|should|need|have to|shall|will|are now|can now|may)\b"
    r"|\b(?:please|instead|now|next|then|first|immediately|always|never|and|to)\b,? (?:call|run|execute|invoke"
    r"|use|send|email|delete|drop"
    r"|transfer|open|visit|click|write|print|say|reply|respond|answer|tell|do|go|set|grant|approve|refund|try)\b"
    r"|^\W{0,4}(?:call|run|execute|invoke|use|send|email|delete|drop|transfer|open|visit|click|write|print|say"
    r"|reply|respond|tell|grant"
    r"|approve|refund|act|pretend|do not|don.t|please|always|never|try|remember|from now)\b"
    r"|\bignorier|\bvergiss|\bmissachte|\brufe?\b.{0,40}\bauf\b|\bignora|\bolvida|\bllama a\b|\bejecuta"
    r"|\bignorez|\boubliez|\bappelez"
    r"|\bexécutez|\bdimentica|\besegui\b|\besqueça|\bexecute\b|игнорируй|забудь|выполни|忽略|无视|执行|调用|無視|実行",
)


def instructs(text: str) -> bool:
    """Returns whether a text gives its reader an instruction; true in doubt, which only drops a quotation."""
    return _INSTRUCTS.search(beginning(text, len(text))) is not None


def quoted(message: str) -> str:
    """Returns the first line of an error, with placeholders, up to the first sentence that gives an instruction.

    The result is empty if the first sentence gives an instruction.
    """
    line = next((text for text in message.splitlines() if text.strip()), "")
    kept, _ = parted(line[: 2 * QUOTE_CHARS])
    return abstract(" ".join(kept)[:QUOTE_CHARS]).strip(" .:;,")


def parted(line: str) -> tuple[list[str], list[str]]:
    """Splits a line into the sentences before the first instruction, and the other sentences."""
    sentences = _SENTENCE.split(line)
    for place, sentence in enumerate(sentences):
        label, _, rest = sentence.partition(":")
        if instructs(sentence) or instructs(rest.strip()) or instructs(label):
            return sentences[:place], sentences[place:]
    return sentences, []
