"""Kinds of tools, such as a search: from the profile's settings, or else from the names in ``tool_kinds.toml``."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import cast

from retrieval.patterns import read
from retrieval.tables.kinds import ToolKind

_READ = read("writer.findings", "tool_kinds.toml")
DEFAULTS = {name: cast("ToolKind", kind) for kind, names in _READ.items() for name in names.split()}
_READS_ONLY = re.compile(r"(?:get|find|list|search|check|read|describe|show|fetch|lookup|query|view|count)_")
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BETWEEN = re.compile(r"[^a-z0-9]+")
_NAMESPACE = re.compile(r".*(?:__|[:./])", re.DOTALL)


def kind_of(tool: str, settings: Mapping[str, str]) -> ToolKind | None:
    """Returns the kind of a tool, or None for a tool that may do anything."""
    if tool in settings:
        return cast("ToolKind", settings[tool])
    whole, own = plain_name(tool), plain_name(_NAMESPACE.sub("", tool))
    if (kind := DEFAULTS.get(whole) or DEFAULTS.get(own)) is not None:
        return kind
    return "other" if _READS_ONLY.match(own) else None


@lru_cache(maxsize=4096)  # the same few names come with every step
def plain_name(name: str) -> str:
    """Returns a name in lower case with underscores: `readFile` is `read_file`."""
    return _BETWEEN.sub("_", _CAPITAL.sub("_", name).lower()).strip("_")
