"""Tells tools that change something from those that only look something up, by their names."""

import re
from functools import lru_cache

from writer.analysis.query_kind import query_kind

_LOOKS_UP = frozenset((
    "get", "find", "list", "search", "check", "read", "describe", "show", "fetch", "lookup", "inspect", "view", "grep",
    "rg", "glob", "ls", "cat", "head", "tail", "stat",
))  # fmt: skip
"""First words in the names of tools that only look something up, such as "get"."""
_NOUNS = frozenset(("list", "check", "view", "show", "head", "cat", "tail", "stat", "ls"))
"""Those of these words that may be a part of a noun within a name, as in ``mailing_list_join``."""
_CHANGES = frozenset((
    "accept", "approve", "archive", "attach", "ban", "copy", "deny", "disable", "enable", "export", "forward", "grant",
    "invite", "join", "kill", "leave", "lock", "mark", "mute", "notify", "pay", "pin", "post", "promote", "push", "put",
    "refresh", "reject", "reorder", "reply", "save", "share", "submit", "subscribe", "sync", "toggle", "unsubscribe",
    "void",
))  # fmt: skip
"""Words of a change that are no verbs of a kind of task, see ``query_kind``."""
_WORKS_OUT = {"calculate", "think"}
"""Whole names of tools without effects outside the agent."""
_KINDS = frozenset(("create", "change", "remove", "repair", "run"))
"""Kinds of tasks whose verbs name a change."""
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")


@lru_cache(maxsize=4096)  # the same few tools come in every run
def changes_state(tool: str) -> bool:
    """Returns whether a tool of this name does more than look something up.

    The name may have a name space (``fs:read``, ``files.search``) and be written in any case (``readFile``). The verb
    may stand after a noun (``mail_search``, ``slack_list_channels``) in a name without a word of a change.
    """
    words = [word.casefold() for word in _WORD.findall(_without_space(tool))]
    later = zip(words[1:], [*words[2:], "s"], strict=False)  # such a word is a verb at the end or before a plural
    if any(word in _LOOKS_UP and (word not in _NOUNS or after.endswith("s")) for word, after in later):
        return words[0] not in _LOOKS_UP and any(word in _CHANGES or query_kind(word) in _KINDS for word in words)
    return not works_out(tool) and (not words or words[0] not in _LOOKS_UP)


def works_out(tool: str) -> bool:
    """Returns whether a tool of this name only thinks or calculates, without input from outside the agent."""
    return _without_space(tool) in _WORKS_OUT


def _without_space(tool: str) -> str:
    return re.split(r"[:./]", tool)[-1]
