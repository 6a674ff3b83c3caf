"""Docstrings begin with a verb or a noun phrase, and attributes say what they are."""

from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.plain_words import openings

PLAIN = ("alembic", "app", "bench", "clients/python", "examples", "policy", "retrieval", "scripts", "writer")
"""The folders in which no such opening is left."""


@pytest.mark.parametrize("folder", PLAIN)
def test_no_docstring_begins_with_a_clause(folder: str):
    assert [row for file in sorted((ROOT / folder).rglob("*.py")) for row in openings(file)] == []


@pytest.mark.parametrize(
    "source",
    [
        '"""What a module is for."""\n',
        'def f():\n    """Of a text that are searched."""\n',
        'LIMIT = 3\n"""Of one user; more wait for their turn."""\n',
        'class A:\n    """A case.\n\n    Attributes:\n        task: what it was asked for.\n    """\n',
        'class A:\n    """A case.\n\n    Attributes:\n        done: whether it ended.\n    """\n',
        'class A:\n    """A case."""\n\n    task: str = ""\n    """In the words of the user."""\n',
        'task = Field(default="", description="how often it ran")\n',
        'name = typer.Option(help=f"of the user in {HOME}")\n',
    ],
)
def test_an_opening_that_is_a_clause_is_found(tmp_path: Path, source: str):
    file = tmp_path / "module.py"
    file.write_text(source)
    assert len(list(openings(file))) == 1
