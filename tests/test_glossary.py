"""The glossary knows each value of each enumeration, and names no module that is not there."""

import re
from pathlib import Path
from typing import Literal, get_args, get_origin

import pytest

from retrieval.tables import kinds

ROOT = Path(__file__).parents[1]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
ENUMERATIONS = {name: set(get_args(kind)) for name, kind in vars(kinds).items() if get_origin(kind) is Literal}


def listed() -> dict[str, set[str]]:
    """The values that the glossary explains, by the enumeration's name."""
    sections = re.findall(r"^## `(\w+)`\n(.*?)(?=^#|\Z)", GLOSSARY, re.MULTILINE | re.DOTALL)
    return {name: set(re.findall(r"^\* `(\w+)`: \S", text, re.MULTILINE)) for name, text in sections}


def test_the_glossary_explains_every_enumeration():
    assert listed().keys() == ENUMERATIONS.keys()


@pytest.mark.parametrize("name", ENUMERATIONS)
def test_the_glossary_explains_just_the_values_of_an_enumeration(name: str):
    assert listed()[name] == ENUMERATIONS[name]


def test_every_module_that_the_glossary_names_is_there():
    missing = [path for path in set(re.findall(r"`([\w/]+\.py)`", GLOSSARY)) if not (ROOT / path).exists()]
    assert missing == []


def test_the_glossary_explains_no_word_twice():
    entries = re.findall(r"^\* ((?:\*\*[^*]+\*\*(?: \([^)]*\))?(?:, )?)+)", GLOSSARY, re.MULTILINE)
    words = [word for entry in entries for word in re.findall(r"\*\*[^*]+\*\*(?: \([^)]*\))?", entry)]
    assert len(words) > 100
    assert len(words) == len(set(words))
