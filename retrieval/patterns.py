"""Reads patterns of texts from data files: each package keeps its own in ``patterns.toml``, one table a subject.

In a pattern, «name» stands for the part of that name in the file's table ``parts``.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
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


@cache
def compiled(package: str, form: str) -> re.Pattern[str]:
    """Returns a pattern of a package, compiled with the parts that it names."""
    return re.compile(whole(package, form))


class Patterns(Mapping[str, re.Pattern[str]]):
    """Patterns by their names; each is compiled when it is first read, because all together take a second."""

    def __init__(self, package: str, forms: Mapping[str, str], linear: Mapping[str, str]) -> None:
        self.package = package
        self.forms, self.linear = forms, linear
        self._compiled: dict[str, re.Pattern[str]] = {}

    def __getitem__(self, name: str) -> re.Pattern[str]:
        """Returns the pattern of this name; raises KeyError if there is none."""
        found = self._compiled.get(name)
        if found is None:
            if name in self.linear:
                found = re2.compile(whole(self.package, self.linear[name]))
            else:
                found = compiled(self.package, self.forms[name])
            self._compiled[name] = found
        return found

    def __iter__(self) -> Iterator[str]:
        """Yields the names of the patterns."""
        yield from self.forms
        yield from self.linear

    def __len__(self) -> int:
        """Returns the number of patterns."""
        return len(self.forms) + len(self.linear)


def patterns(package: str, *tables: str) -> Patterns:
    """Returns the patterns of the tables by their names; RE2 runs those of ``linear.table``, in linear time."""
    content = read(package)
    forms, linear = (
        {name: form for table in tables for name, form in each.get(table, {}).items()}
        for each in (content, content.get("linear", {}))
    )
    return Patterns(package, forms, linear)


def byte_patterns(package: str, table: str) -> dict[str, re.Pattern[bytes]]:
    """Returns the compiled patterns of the table ``bytes.table``, for texts in UTF-8, by their names."""
    forms = read(package)["bytes"][table]
    return {name: re.compile(whole(package, form).encode()) for name, form in forms.items()}


def word_sets(package: str, table: str) -> dict[str, frozenset[str]]:
    """Returns the sets of words of the table ``words.table`` by their names."""
    return {name: frozenset(text.split()) for name, text in read(package)["words"][table].items()}
