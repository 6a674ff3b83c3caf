"""Exports of a source file: its public names, interfaces and classes.

RE2's patterns find the lines at which declarations begin, in linear time. They need no whole file, because agents often
see a part of one. Only the top level of a file is read, which its indentation shows.
"""

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any

import re2

PARSED_BYTES = 128 * 1024
"""Bytes at the beginning of a file that are read."""
MOST_NAMES = 60
LONGEST_NAME = 200

Offers = Iterator[tuple[str, str]]
"""Pairs of a group ("names", "interfaces" or "classes") and an exported name."""


def exports(path: str, text: str) -> dict[str, list[str]]:
    """Returns the exports of a file by group, each in the order of the file, together at most MOST_NAMES.

    Groups without exports are left out; a file whose suffix belongs to no supported language has none.
    """
    read = _LANGUAGES.get(posixpath.splitext(path)[1].lower())
    groups: dict[str, list[str]] = {"names": [], "interfaces": [], "classes": []}
    offers = read(text[:PARSED_BYTES].encode("utf-8", "replace")) if read else ()
    for group, name in islice(dict.fromkeys(offers), MOST_NAMES):
        groups[group].append(name[:LONGEST_NAME])
    return {group: names for group, names in groups.items() if names}


_NAME = r"[\pL_$][\pL\pN_$]*"
_UPPER = r"\p{Lu}[\pL\pN_]*"
_PYTHON = re2.compile(
    r"(?m)^(?:async )?(?P<kind>def|class) (?P<name>\pL[\pL\pN_]*)|^(?P<other>\pL[\pL\pN_]*) *(?::[^=\n]+)?=[^=]"
)
_SCRIPT = re2.compile(
    r"(?m)^(?P<export>export +)?(?:default +)?(?:declare +)?(?:abstract +)?(?:async +)?"
    r"(?P<kind>class|interface|function\*?|const enum|enum|type|namespace|module|const|let|var) +"
    rf"(?P<name>{_NAME})(?P<rest>[^\n]*)"
    r"|^export (?P<default>default)\b|^export (?:type )?\{(?P<clause>[^}]*)\}"
    rf"|^(?:module\.)?exports\.(?P<value>{_NAME}) *=|^module\.exports *= *\{{(?P<object>[^}}]*)\}}"
)
_GO = re2.compile(
    rf"(?m)^func (?:\([^)\n]*\) )?(?P<other>{_UPPER})"
    rf"|^(?:type|const|var) (?:(?P<name>{_UPPER})(?:\[[^\]\n]*\])? *(?P<kind>struct\b|interface\b)?"
    r"|\(\n(?P<block>(?:[^)\n][^\n]*\n|\n)*)\))"
)
_GO_BLOCK = re2.compile(rf"(?m)^(?:\t|    )(?P<name>{_UPPER})(?:\[[^\]\n]*\])? *(?P<kind>struct\b|interface\b)?")
_RUST = re2.compile(
    r"(?m)^pub(?:\([^)\n]*\))? +(?:(?:async|const|unsafe|extern \"C\") +)*"
    rf"(?P<kind>struct|enum|union|trait|fn|type|const|static|mod) +(?:mut +)?(?P<name>{_NAME})"
    rf"|^macro_rules! *(?P<macro>{_NAME})"
)
_JAVA = re2.compile(
    rf"(?m)^(?:@?[a-z-]+ +)*(?P<kind>class|record|enum|@?interface) +(?P<name>{_NAME})"
    rf"|^(?P<indent>[ \t]+)(?:@\w+ +)*(?P<public>public +)?[\pL<][^=;{{}}()\n]*[ >\]](?P<method>{_NAME})\("
)
_GROUPS = {
    **dict.fromkeys(("class", "struct", "enum", "union", "record"), "classes"),
    **dict.fromkeys(("interface", "trait", "@interface"), "interfaces"),
}
"""Groups by the word that declares a name; with other words it is among the names."""


def _matches(pattern: Any, data: bytes) -> Iterator[dict[str, str]]:
    """Yields the groups of each match of an RE2 expression, which ships no types; without those that took no part."""
    for match in pattern.finditer(data):
        yield {name: text.decode("utf-8", "replace") for name, text in match.groupdict().items() if text is not None}


def _declarations(pattern: Any, data: bytes) -> Offers:
    """Yields the names that a Python, Go or Rust file declares, those of Go also inside of blocks."""
    for match in _matches(pattern, data):
        if "block" in match:
            yield from _declarations(_GO_BLOCK, match["block"].encode())
        else:
            name = match.get("name") or match.get("other") or f"{match['macro']}!"
            yield _GROUPS.get(match.get("kind", ""), "names"), name


def _script(data: bytes) -> Offers:
    """Yields the exports of a JavaScript or TypeScript file, and all its classes and interfaces."""
    for match in _matches(_SCRIPT, data):
        group = {"class": "classes", "interface": "interfaces"}.get(match.get("kind", ""), "names")
        if "name" in match and (group != "names" or "export" in match) and match["name"] != "extends":
            yield group, match["name"]
            if match["kind"] in {"const", "let", "var"} and not _BRACKET.search(match["rest"]):
                yield from (("names", name) for name in _FURTHER.findall(match["rest"]))
        for name in ("default", "value"):
            if name in match:
                yield "names", match[name]
        for part in match.get("clause", "").split(","):  # `a as b` exports b
            yield from (("names", name) for name in part.split("//")[0].split()[-1:])
        for part in match.get("object", "").split(","):
            yield from (("names", name) for name in _KEY.findall(part))


def _java(data: bytes) -> Offers:
    """Yields the types of a file, and the public methods of each; members of inner types are further indented."""
    declared = list(_matches(_JAVA, data))
    types = {match["name"] for match in declared if "name" in match}
    indent = min((match["indent"] for match in declared if "indent" in match), key=len, default="")
    in_interface = False
    for match in declared:
        if "name" in match:
            in_interface = "interface" in match["kind"]
            yield _GROUPS[match["kind"]], match["name"]
        elif match["indent"] == indent and ("public" in match or in_interface) and match["method"] not in types:
            yield "names", match["method"]


_BRACKET, _FURTHER, _KEY = (
    re.compile(r"[({\[]"),
    re.compile(r", *([A-Za-z_$][\w$]*)(?= *[:=])"),
    re.compile(r"^\s*([A-Za-z_$][\w$]*)\s*(?::|$)"),
)
_LANGUAGES: Mapping[str, Callable[[bytes], Offers]] = {
    **dict.fromkeys((".py", ".pyi"), partial(_declarations, _PYTHON)),
    **dict.fromkeys((".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx"), _script),
    ".go": partial(_declarations, _GO),
    ".rs": partial(_declarations, _RUST),
    ".java": _java,
}
"""Functions that read the exports off a file, by the suffix of its name."""
