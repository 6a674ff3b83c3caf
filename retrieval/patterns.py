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


def patterns(package: str, table: str, *, linear: bool = False) -> dict[str, re.Pattern[str]]:
    """Returns the compiled patterns of a table by their names; ``linear``: RE2 runs them, in linear time."""
    compiled = re2.compile if linear else re.compile
    return {name: compiled(whole(package, pattern)) for name, pattern in read(package)[table].items()}
