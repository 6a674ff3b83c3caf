"""Which words a run has first from a text that gives instructions; an answer that acts on them is not believed.

Whoever writes into what a tool answers may address the model that reads it. A language model is told that this is
data, and may obey all the same; so what it writes is held against where its words come from.
"""

import re
from collections.abc import Iterable, Sequence

from writer.analysis.causes import parted
from writer.procedures.llm.run_digest import Told

MOST_ELSEWHERE = 2
"""How many planted words a description may have by chance; what is to be done may have none."""

_WORD = re.compile(r"[^\W_]{3,}")
STEM_CHARS = 5
"""So much of a word is compared, for an answer may inflect it."""
_VALUE = re.compile(r"https?://[^\s\"'<>]+|[\w.+-]+@[\w.-]+|\b\d{5,}\b")
_COMMON = (
    "the and for with from that this then when where which who not are was were has have had its can may will one two "
    "all any each other into onto than use used using call calls called again before after first next step steps "
    "value values argument arguments tool tools result results output input error errors fail fails failed same new "
    "make sure check find get set give given found correct right valid must should instead only also such like until "
    "try list name names type http https www com org net"
)
"""Words of any procedure; that they were planted says nothing."""


def planted(told: Told, trusted: Iterable[str] = ()) -> set[str]:
    """Returns the words that the run has first behind an instruction in a tool's output, or in a text between tools.

    An instruction in words that nobody knows for one still needs an address: to those words belong addresses and long
    numbers of outputs that no call used.

    Args:
        told: what a model is told of the run; it can repeat nothing else.
        trusted: texts that the rules or an earlier version wrote.
    """
    said_by_user = [turn.content for turn in told.turns if turn.role == "user"]
    known = words([_COMMON, told.task, *told.plan, *said_by_user, *trusted])
    found: set[str] = set()
    for call in told.calls:
        known |= words([call.tool, call.given]) - found
        before, behind = _split(call.output)
        known |= words(before) - found
        found |= words(behind) - known
    heard = [turn.content for turn in told.turns if turn.role not in {"user", "assistant", "system", "developer"}]
    found |= words(text for content in heard for text in _split(content)[1]) - known
    used = "\n".join([told.task, *told.plan, *said_by_user, *(call.given for call in told.calls), *trusted])
    read = [value for text in [*heard, *(call.output for call in told.calls)] for value in _VALUE.findall(text)]
    return found | (words(value for value in read if value not in used) - words([_COMMON, used]))


def obeys(planted_words: set[str], done: Sequence[str], described: Sequence[str]) -> bool:
    """Returns whether an answer acts on planted words, or repeats more of them than chance would.

    Args:
        planted_words: see ``planted``.
        done: its texts that say what to do.
        described: its other texts.
    """
    return bool(planted_words & words(done)) or len(planted_words & words(described)) > MOST_ELSEWHERE


def words(texts: Iterable[str]) -> set[str]:
    """Returns the beginnings of the texts' words and numbers, of three characters or more, as they are compared."""
    return {word[:STEM_CHARS] for text in texts for word in _WORD.findall(text.casefold())}


def _split(text: str) -> tuple[list[str], list[str]]:
    """Returns the sentences before the first that gives an instruction, and all from there on."""
    before: list[str] = []
    lines = text.splitlines()
    for place, line in enumerate(lines):
        kept, rest = parted(line)
        before += kept
        if rest:
            return before, [*rest, *lines[place + 1 :]]
    return before, []
