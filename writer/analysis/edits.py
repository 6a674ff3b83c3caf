"""Finds the edit that a call makes to a text: the text before and after, from its arguments or from earlier calls."""

import re
from collections.abc import Mapping, Sequence
from itertools import islice

import re2

from writer.analysis.calls import Call
from writer.analysis.move_values import placeholder_of
from writer.analysis.source_differences import ADDED, PATCH, SOURCE_CHARS, source_difference

MOST_EDITS = 20
MOST_ARGUMENTS = 8
MOST_LOOKED_AT = 20
"""Number of calls before a call that are searched for the version of a file that it overwrites."""

_PAIRS = {
    "newstr": "oldstr", "newstring": "oldstring", "newtext": "oldtext", "newcontent": "oldcontent", "new": "old",
    "after": "before", "replace": "search", "replacement": "original",
}  # fmt: skip
"""Names of the argument that holds the text which an edit puts in, and of the one that it takes out, if any."""
_BLOCK = re2.compile(r"(?s)<{5,} ?SEARCH\n(.*?)\n?={5,}\n(.*?)\n?>{5,} ?REPLACE")
"""A text that is taken out, and the one that is put in its place, in a text of several such blocks."""
_REMOVED = re.compile(r"(?m)^-(?!-- )(.*)$")
"""A line that a patch removes."""

_FILE = re.compile(r"[\w./~@+-]{0,400}\.([A-Za-z]{1,8})")
_PROSE = frozenset(("csv", "doc", "docx", "eml", "htm", "html", "log", "markdown", "md", "rst", "rtf", "tex", "txt"))
"""Endings of files that may hold prose or data."""

Edit = tuple[str, str, str]
"""The name of the argument that holds the new text, the text before, and the text after."""


def edit_of(call: Call, calls: Sequence[Call]) -> Edit | None:
    """Returns the edit that a call makes; None: it makes none that is known.

    Args:
        call: the call.
        calls: the calls of its run, among which an earlier one may show the text that the call overwrites.
    """
    if not isinstance(call.arguments, Mapping):
        return None
    edits = call.arguments.get("edits")
    some = edits[:MOST_EDITS] if isinstance(edits, list) else [call.arguments]
    pairs = [pair for each in some if isinstance(each, Mapping) and (pair := _pair(each))]
    texts = {key: text for key, text in islice(call.arguments.items(), MOST_ARGUMENTS) if isinstance(text, str)}
    if pairs:
        endings = {match[1].casefold() for text in texts.values() if (match := _FILE.fullmatch(text))}
        name = "code" if endings and not _PROSE & endings else "new_text"
        return name, "\n".join(pair[0] for pair in pairs), "\n".join(pair[1] for pair in pairs)
    for text in texts.values():
        if blocks := _BLOCK.findall(text[:SOURCE_CHARS]):
            return "patch", "\n".join(block[0] for block in blocks), "\n".join(block[1] for block in blocks)
        if PATCH.search(text):
            return "patch", "\n".join(_REMOVED.findall(text)), "\n".join(ADDED.findall(text))
    return _overwritten(call, texts, calls)


def edit_difference(call: Call, calls: Sequence[Call]) -> str | None:
    """Describes the lines that a call edits, see ``source_difference``; None: it makes no edit that is known.

    The arguments are those of ``edit_of``.
    """
    edit = edit_of(call, calls)
    return source_difference(*edit) if edit else None


def _pair(arguments: Mapping[object, object]) -> tuple[str, str] | None:
    """Returns the texts before and after that the arguments of an edit hold; None: it is no edit."""
    names = {str(key).replace("_", "").casefold(): key for key in islice(arguments, MOST_ARGUMENTS)}
    for new, old in _PAIRS.items():
        before, after = arguments.get(names.get(old)), arguments.get(names.get(new))
        if isinstance(after, str) and isinstance(before, str | None):
            return before or "", after
    return None


def _overwritten(call: Call, texts: Mapping[object, str], calls: Sequence[Call]) -> Edit | None:
    """Returns the edit of a call that writes a whole file, if an earlier call wrote or read the file."""
    path = next((text for key, text in texts.items() if placeholder_of(str(key)) == "<path>"), "")
    key, text = max(texts.items(), key=lambda item: item[1].count("\n"), default=("", ""))
    if not path or "\n" not in text:
        return None
    for earlier in reversed(calls[max(0, call.index - MOST_LOOKED_AT) : call.index]):
        if isinstance(earlier.arguments, Mapping) and path in list(earlier.arguments.values())[:MOST_ARGUMENTS]:
            before = earlier.arguments.get(key, earlier.output)
            return (str(key), before, text) if isinstance(before, str) else None
    return None
