"""Reads patterns of texts from data files: each package keeps its own in ``patterns.toml``, one table a subject.

In a pattern, «name» stands for the part of that name in the file's table ``parts``.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import re2

Engine = Callable[[str], re.Pattern[str]]


@cache
def read(package: str, file: str = "patterns.toml") -> dict[str, Any]:
    """Returns the content of a package's TOML file."""
    return tomllib.loads(files(package).joinpath(file).read_text(encoding="utf-8"))


def whole(package: str, pattern: str) -> str:
    """Returns a pattern of a package with the parts that it names in their places."""
    parts: dict[str, str] = read(package).get("parts", {})
    return re.sub(r"«(\w+)»", lambda name: whole(package, parts[name[1]]), pattern)


@cache
def compiled(package: str, form: str, engine: Engine = re.compile) -> re.Pattern[str]:
    """Returns a pattern of a package, compiled by an engine with the parts that it names."""
    return engine(whole(package, form))


class Patterns(dict[str, re.Pattern[str]]):
    """Patterns by their names, each compiled when it is first read by its name: all together take a second.

    A dict, because analyses read patterns some thousand times a run. Iterate over ``all()``, which compiles the rest.
    """

    def __init__(self, package: str, forms: Mapping[str, tuple[str, Engine]]) -> None:
        super().__init__()
        self._package = package
        self._forms = forms

    def __missing__(self, name: str) -> re.Pattern[str]:
        """Returns the pattern of this name, compiled; raises KeyError if there is none."""
        self[name] = compiled(self._package, *self._forms[name])
        return self[name]

    def all(self) -> dict[str, re.Pattern[str]]:
        """Returns every pattern by its name."""
        return {name: self[name] for name in self._forms}


def patterns(package: str, *tables: str) -> Patterns:
    """Returns the patterns of the tables by their names; RE2 runs those of ``linear.table``, in linear time."""
    content = read(package)
    by_engine = (re.compile, content), (re2.compile, content.get("linear", {}))
    forms = {
        name: (form, engine)
        for engine, by_table in by_engine
        for table in tables
        for name, form in by_table.get(table, {}).items()
    }
    return Patterns(package, forms)


def byte_patterns(package: str, table: str) -> dict[str, re.Pattern[bytes]]:
    """Returns the compiled patterns of the table ``bytes.table``, for texts in UTF-8, by their names."""
    forms = read(package)["bytes"][table]
    return {name: re.compile(whole(package, form).encode()) for name, form in forms.items()}


def word_sets(package: str, table: str) -> dict[str, frozenset[str]]:
    """Returns the sets of words of the table ``words.table`` by their names."""
    return {name: frozenset(text.split()) for name, text in read(package)["words"][table].items()}
