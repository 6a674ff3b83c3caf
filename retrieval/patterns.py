"""Reads patterns of texts from data files: each package keeps its own in ``patterns.toml``, one table a subject.

In a pattern, «name» stands for the part of that name in the file's table ``parts``.
"""

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

import re2


@cache
def read(package: str, file: str = "patterns.toml") -> dict[str, Any]:
    """Returns the content of a package's TOML file."""
    return tomllib.loads(files(package).joinpath(file).read_text(encoding="utf-8"))


def whole(package: str, pattern: str) -> str:
    """Returns a pattern of a package with the parts that it names in their places."""
    parts: dict[str, str] = read(package).get("parts", {})
    return re.sub(r"«(\w+)»", lambda name: whole(package, parts[name[1]]), pattern)


def patterns(package: str, table: str) -> dict[str, re.Pattern[str]]:
    """Returns the compiled patterns of a table by their names; RE2 runs those of ``linear.table``, in linear time."""
    content = read(package)
    by_engine = (re.compile, content.get(table, {})), (re2.compile, content.get("linear", {}).get(table, {}))
    return {name: engine(whole(package, form)) for engine, forms in by_engine for name, form in forms.items()}


def byte_patterns(package: str, table: str) -> dict[str, re.Pattern[bytes]]:
    """Returns the compiled patterns of the table ``bytes.table``, for texts in UTF-8, by their names."""
    forms = read(package)["bytes"][table]
    return {name: re.compile(whole(package, form).encode()) for name, form in forms.items()}


def word_sets(package: str, table: str) -> dict[str, frozenset[str]]:
    """Returns the sets of words of the table ``words.table`` by their names."""
    return {name: frozenset(text.split()) for name, text in read(package)["words"][table].items()}
