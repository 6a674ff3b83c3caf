"""Patterns are read from data files, with their parts in their places."""

import tomllib
from importlib.resources import files

import pytest

from retrieval.patterns import patterns, whole

PACKAGES = ["writer.analysis", "writer.facts"]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_part_is_named_by_a_pattern_or_by_code(package: str):
    text = files(package).joinpath("patterns.toml").read_text()
    code = "\n".join(file.read_text() for file in files(package).iterdir() if file.name.endswith((".py", ".toml")))
    unused = [part for part in tomllib.loads(text)["parts"] if f"«{part}»" not in code]
    assert not unused


def test_a_part_may_name_parts():
    assert "«" not in whole("writer.facts", "«town»")


def test_a_table_s_patterns_are_compiled_by_their_names():
    assert patterns("writer.facts", "kin")["home"].search("My sister lives in Rome.")
