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

CLAUSE = r"(What|Who|Whose|Whom|Whether|Of|That|From|Which|Where|When|How|As|Nothing|Nobody|None|Does so)\b"
"""Openings of any docstring that make a clause of it, or a riddle."""
NO_SUBJECT = (
    r"(By|In|On|At|To|With|Without|For|If|Is|Are|Has|Have|Does|May|Must|Can|Was|Were|Beside|Until|Because|So|And|But|It"
    r"|Its|They|Their)\b"
)
"""Openings of an attribute's doc that leave out, or hide in a pronoun, what the attribute is."""
DOCSTRING = re.compile(CLAUSE)
ATTRIBUTE = re.compile(rf"{CLAUSE}|{NO_SUBJECT}", re.IGNORECASE)
FIELD = re.compile(r"^ {4}\w+(?: \([^)]*\))?: (.*)")
"""A line of ``Args:`` or ``Attributes:`` that begins with a name, and its text."""
TEXTS = ("description", "help")
"""Arguments that are docs of an attribute: of an API's field, of a command's option."""
SECTIONS = ("Args:", "Attributes:")


class Opening(NamedTuple):
    """A docstring that begins with a forbidden opening."""

    place: str
    line: str


def openings(file: Path) -> Iterator[Opening]:
    """Yields each docstring, attribute doc, description and field of a docstring that begins with a clause."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    name = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            doc = ast.get_docstring(node) or ""
            if DOCSTRING.match(doc):
                yield Opening(f"{name}:{getattr(node, 'lineno', 1)}", doc.splitlines()[0])
            yield from (Opening(f"{name}:{getattr(node, 'lineno', 1)}", line.strip()) for line in _fields(doc))
        docs = [doc for doc in _attribute_docs(node) if ATTRIBUTE.match(doc.value)]
        yield from (Opening(f"{name}:{doc.lineno}", doc.value.splitlines()[0]) for doc in docs)


def _attribute_docs(node: ast.AST) -> Iterator[ast.Constant]:
    """Yields each text right below an assignment of the node, and each description that the node passes to a call."""
    values: list[ast.expr] = []
    if isinstance(node, (ast.Module, ast.ClassDef)):
        pairs = zip(node.body, node.body[1:], strict=False)
        assigned = (after for before, after in pairs if isinstance(before, (ast.Assign, ast.AnnAssign)))
        values = [after.value for after in assigned if isinstance(after, ast.Expr)]
    elif isinstance(node, ast.Call):
        values = [word.value for word in node.keywords if word.arg in TEXTS]
    for value in values:
        first = value.values[0] if isinstance(value, ast.JoinedStr) else value
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            yield first


def _fields(doc: str) -> Iterator[str]:
    within = False
    for line in doc.splitlines():
        if line and not line.startswith(" "):
            within = line in SECTIONS
        elif within and (field := FIELD.match(line)) and ATTRIBUTE.match(field[1]):
            yield line


if __name__ == "__main__":
    folders = sys.argv[1:] or [
        "app",
        "writer",
        "retrieval",
        "policy",
        "alembic",
        "bench",
        "examples",
        "scripts",
        "clients/python",
    ]
    rows = [row for folder in folders for file in sorted((ROOT / folder).rglob("*.py")) for row in openings(file)]
    for row in rows:
        sys.stdout.write(f"{row.place}: {row.line}\n")
    sys.stdout.write(f"{len(rows)} left\n")
