"""Detects prompt injection: words that come from an instruction in a tool's output, and answers that repeat them.

A tool's output may contain an instruction to the model that reads the output. The prompt tells the model to treat
outputs as data, but the model may obey, so the source of each word of an answer is checked.
"""

import re
from collections.abc import Iterable, Sequence

from retrieval.patterns import read
from writer.analysis.causes import parted
from writer.procedures.llm.run_digest import RunDigest

MOST_ELSEWHERE = 2
"""Maximum injected words in the parts of an answer that only describe; texts that an agent follows may have none."""

_WORD = re.compile(r"[^\W_]{3,}")
STEM_CHARS = 5
"""Number of first characters of a word that are compared, because an answer may inflect the word."""
_VALUE = re.compile(r"https?://[^\s\"'<>]+|[\w.+-]+@[\w.-]+|\b\d{5,}\b")
_COMMON: str = read("writer.procedures.llm", "prompts.toml")["common"]
"""Words that any procedure may contain, and that are no evidence of an injection."""


def injected_words(digest: RunDigest, trusted: Iterable[str] = ()) -> set[str]:
    """Returns the words that first occur after an instruction, in an output or in a message of an unusual role.

    Addresses and long numbers in outputs that no call used are returned, too, because an instruction that was not
    recognised needs an address or an account.

    Words of ``trusted`` texts, by the rules or in an earlier version of the procedure, are not returned.
    """
    by_user = [turn.content for turn in digest.turns if turn.role == "user"]
    known = words([_COMMON, digest.task, *digest.plan, *by_user, *trusted])
    injected: set[str] = set()
    for call in digest.calls:
        known |= words([call.tool, call.input]) - injected
        before, after = _split(call.output)
        known |= words(before) - injected
        injected |= words(after) - known
    messages = [turn.content for turn in digest.turns if turn.role not in {"user", "assistant", "system", "developer"}]
    injected |= words(text for content in messages for text in _split(content)[1]) - known
    used = "\n".join([digest.task, *digest.plan, *by_user, *(call.input for call in digest.calls), *trusted])
    read = [value for text in [*messages, *(call.output for call in digest.calls)] for value in _VALUE.findall(text)]
    return injected | (words(value for value in read if value not in used) - words([_COMMON, used]))


def follows_injection(injected: set[str], done: Sequence[str], described: Sequence[str]) -> bool:
    """Returns whether a model's answer has an injected word in its instructions, or more than MOST_ELSEWHERE elsewhere.

    Args:
        injected: the injected words, see ``injected_words``.
        done: texts of the answer that an agent follows.
        described: all texts of the answer.
    """
    return bool(injected & words(done)) or len(injected & words(described)) > MOST_ELSEWHERE


def words(texts: Iterable[str]) -> set[str]:
    """Returns the first STEM_CHARS characters of each word and number of at least three characters."""
    return {word[:STEM_CHARS] for text in texts for word in _WORD.findall(text.casefold())}


def _split(text: str) -> tuple[list[str], list[str]]:
    """Splits a text into the sentences before the first that gives an instruction, and the rest."""
    before: list[str] = []
    lines = text.splitlines()
    for place, line in enumerate(lines):
        kept, rest = parted(line)
        before += kept
        if rest:
            return before, [*rest, *lines[place + 1 :]]
    return before, []
