"""Causes of errors: a fixed list, and quotations of an error message that contain no instruction.

The advice of a lesson contains only these causes. Words of a tool's output appear only in such quotations: in the
summary and the cause of a failure, and in a revision's note on a failed run.
"""

import re
from dataclasses import dataclass
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
        pattern: pattern of the messages of this class.
    """

    name: str
    means: str
    pattern: _Pattern


def _cause(name: str, means: str, pattern: str) -> Cause:
    return Cause(name, means, re2.compile(rf"(?i){pattern}"))


_CAUSES = (
    _cause("a complaint of the user", "the result was not what the user had asked for", r"^the user said that"),
    _cause("an empty result", "the call asked for what does not exist in that spelling", r"^no results$"),
    _cause(
        "a rate-limit error",
        "there were too many calls in a short time",
        r"rate.?limit|too many requests|\b429\b",
    ),
    _cause("an exceeded-quota error", "what was asked for is more than is allowed", r"quota"),
    _cause(
        "an unavailable-service error",
        "the tool could not be reached or was overloaded",
        r"\b50[0234]\b|unavailable|time[d ]{0,2}.?out|connection (?:refused|reset|closed|aborted)|overloaded"
        r"|temporar|zeitüberschreitung",
    ),
    _cause(
        "a syntax error",
        "the call was not well formed",
        r"syntax|unexpected (?:token|end|eof|indent)|parse error|invalid json|decode|decimal integer literal"
        r"|unterminated",
    ),
    _cause(
        "an unknown-argument error",
        "an argument was passed that the tool does not have",
        r"unexpected keyword|(?:unknown|unrecogni[sz]ed|extra|additional) (?:argument|parameter|field|option"
        r"|propert|input)",
    ),
    _cause(
        "a missing-argument error",
        "an argument that the tool requires was not there",
        r"missing|required|must (?:provide|specify)|not.null constraint|null value|fehlt|falta|manquant",
    ),
    _cause(
        "an already-exists error",
        "what was to be made is there",
        r"already exists|duplicate"
        r"|unique constraint|\b409\b",
    ),
    _cause(
        "a permission error",
        "the call was not allowed",
        r"permission|denied|forbidden|unauthori[sz]ed|not (?:allowed|permitted|authori[sz]ed)|\b40[13]\b"
        r"|verweigert|interdit",
    ),
    _cause(
        "an unknown-tool error",
        "there is no tool or command of that name",
        r"(?:tool|command|action"
        r"|function|method) .{0,80}not found|unknown (?:tool|action|command|function|method)",
    ),
    _cause(
        "a not-found error",
        "what the arguments name does not exist, or not in that spelling",
        r"not found|n.t exist|not exist|no such|unknown|not available|\b404\b|gefunden|existiert|encontrad"
        r"|existe|introuvable|trovat|найден|未找到|不存在|見つかり",
    ),
    _cause(
        "an insufficient-means error",
        "what was there did not suffice",
        r"insufficient|not enough|balance"
        r"|no space left|out of memory",
    ),
    _cause(
        "a mismatch error",
        "two of the arguments, or an argument and the state, must agree and did not",
        r"match|add up|mismatch|differ|not equal|foreign key|violates",
    ),
    _cause(
        "an invalid-value error",
        "a value did not have the type, form or range that the tool expects",
        r"validation|invalid|must be|should be|expected|type|format|range|not a valid|indices|ungültig|inválid"
        r"|illegal|(?:un|not )supported|not accepted",
    ),
    _cause(
        "a wrong-state error",
        "what the call is about was in a state that does not allow it",
        r"cannot"
        r"|can't|non-\w+|\bnot\b|already|closed|locked",
    ),
)
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
