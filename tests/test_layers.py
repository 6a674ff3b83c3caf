"""The project is laid out as the design says."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.paths import ROOT

PACKAGES = ("app", "writer", "retrieval", "policy")


def test_imports_go_one_way_only():
    linter = Path(sys.executable).parent / "lint-imports"
    ran = subprocess.run((linter, "--no-cache"), cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_migrations_folder_does_not_shadow_the_library():
    assert not (ROOT / "alembic" / "__init__.py").exists()


@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_says_what_it_is_for(package: str):
    silent = [
        str(file.relative_to(ROOT))
        for file in sorted((ROOT / package).rglob("*.py"))
        if not ast.get_docstring(ast.parse(file.read_text()))
    ]
    assert not silent
