"""Patterns are read from data files, with their parts in their places."""

import pkgutil
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.resources import files

import pytest

from retrieval.patterns import Patterns, compiled, patterns, read, whole
from tests.paths import ROOT
from writer.facts.forms import about_me
from writer.facts.languages import LANGUAGES

PACKAGES = ["writer.analysis", "writer.facts", "writer.privacy", "retrieval.sessions"]
WITH_PARTS = PACKAGES[:2]


@pytest.mark.parametrize("package", WITH_PARTS)
def test_every_part_is_named_by_a_pattern_or_by_code(package: str):
    text = files(package).joinpath("patterns.toml").read_text()
    code = "\n".join(file.read_text() for file in files(package).iterdir() if file.name.endswith((".py", ".toml")))
    unused = [part for part in tomllib.loads(text)["parts"] if f"«{part}»" not in code]
    assert not unused


def test_a_part_may_name_parts():
    assert "«" not in whole("writer.facts", "«town»")


def test_a_pattern_is_compiled_when_it_is_first_read_and_a_name_without_one_is_an_error():
    kin = patterns("writer.facts", "kin")
    assert kin["home"].search("My sister lives in Rome.")
    assert kin["home"] is kin["home"]
    with pytest.raises(KeyError, match="nothing"):
        kin["nothing"]


@pytest.mark.parametrize("package", PACKAGES)
def test_each_pattern_that_is_compiled_late_is_a_pattern(package: str):
    folder = import_module(package).__path__
    modules = [import_module(f"{package}.{each.name}") for each in pkgutil.iter_modules(folder)]
    found = [each for module in modules for each in vars(module).values() if isinstance(each, Patterns)]
    sources = [pattern.pattern for each in found for pattern in each.all().values()]
    assert sources
    assert all(sources)


def test_each_form_of_a_fact_that_is_compiled_late_is_a_pattern():
    assert about_me()
    forms = [form for form, *_ in read("writer.facts")["ended"]["by"]]
    forms += [form for pairs in read("writer.facts")["replacements"].values() for form, _ in pairs]
    forms += [
        form for each in LANGUAGES for table in ("rules", "endings", "aversions") for form in each[table].values()
    ]
    assert len(forms) > 100
    for form in forms:
        assert compiled("writer.facts", form).groups >= 0


def test_a_service_that_starts_compiles_no_pattern_of_facts():
    code = "import app.main, writer.facts.forms as f; assert not f.are_compiled()"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
