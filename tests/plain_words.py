"""The openings that a docstring may not have: ``python -m tests.plain_words [FOLDER …]`` lists each one that is left.

A docstring begins with a verb or a noun phrase, never with a clause; an attribute's doc names what the attribute is.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.paths import ROOT

CLAUSE = re.compile(r"(What|Who|Whose|Whom|Whether|Of|That|From|Which|Where|When|How|As|Nothing|Nobody|None|Does so)\b")
"""Openings of any docstring that make a clause of it, or a riddle."""
NO_SUBJECT = re.compile(
    r"(By|In|On|At|To|With|Without|For|If|Is|Are|Has|Have|Does|May|Must|Can|Was|Were|Beside|Until|Because|So|And|But|It|Its|They|Their)\b"
)
"""Openings of an attribute's doc that leave out, or hide in a pronoun, what the attribute is."""
FIELD = re.compile(r"^ {4}\w+(?: \([^)]*\))?: (what|who|whose|whom|of|that|which|nobody|nothing|none)\b", re.IGNORECASE)
"""A line of ``Args:`` or ``Attributes:`` whose text begins with a clause."""
SECTIONS = ("Args:", "Attributes:")


class Opening(NamedTuple):
    """A docstring that begins with a forbidden opening."""

    place: str
    line: str


def openings(file: Path) -> Iterator[Opening]:
    """Yields each docstring, attribute doc and field of a docstring in the file that begins with a clause."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    name = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            doc = ast.get_docstring(node) or ""
            if CLAUSE.match(doc):
                yield Opening(f"{name}:{getattr(node, 'lineno', 1)}", doc.splitlines()[0])
            yield from (Opening(f"{name}:{getattr(node, 'lineno', 1)}", line.strip()) for line in _fields(doc))
        if isinstance(node, (ast.Module, ast.ClassDef)):
            for doc in _attribute_docs(node):
                if CLAUSE.match(doc.value.value) or NO_SUBJECT.match(doc.value.value):  # type: ignore[attr-defined]
                    yield Opening(f"{name}:{doc.lineno}", doc.value.value.splitlines()[0])  # type: ignore[attr-defined]


def _attribute_docs(node: ast.Module | ast.ClassDef) -> Iterator[ast.Expr]:
    """Yields each string that stands right below an assignment."""
    for before, after in zip(node.body, node.body[1:], strict=False):
        is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        if isinstance(before, (ast.Assign, ast.AnnAssign)) and is_text and isinstance(after.value.value, str):
            yield after


def _fields(doc: str) -> Iterator[str]:
    within = False
    for line in doc.splitlines():
        if line and not line.startswith(" "):
            within = line in SECTIONS
        elif within and FIELD.match(line):
            yield line


if __name__ == "__main__":
    folders = sys.argv[1:] or ["app", "writer", "retrieval", "policy", "alembic", "bench", "examples", "scripts"]
    rows = [row for folder in folders for file in sorted((ROOT / folder).rglob("*.py")) for row in openings(file)]
    for row in rows:
        sys.stdout.write(f"{row.place}: {row.line}\n")
    sys.stdout.write(f"{len(rows)} left\n")
