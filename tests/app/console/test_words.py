"""The words of the console cover those of the packages."""

import re
from typing import get_args

from app.console.render import times
from app.console.words import REASONS, SETTINGS, TERMS, section
from app.routes.decisions import TermsOut
from app.schemas.bank import ProfilePatch, SharesPatch
from policy.reasons import Reason
from tests.paths import ROOT


def test_every_reason_is_told_in_a_sentence():
    assert set(REASONS) == set(get_args(Reason))


def test_no_page_speaks_in_the_riddles_that_readers_met():
    riddles = "it goes for good|that the lot left|their fate|for who wants to"
    sources = [path for path in (ROOT / "app" / "console").rglob("*") if path.suffix in {".py", ".html", ".toml"}]
    assert len(sources) > 20
    assert [path for path in sources if re.search(riddles, path.read_text(), re.IGNORECASE)] == []


def test_every_setting_of_a_profile_is_on_the_form_with_a_sentence():
    shown = [setting for group in SETTINGS.values() for setting in group]
    shares = {f"{part}_share" for part in SharesPatch.model_fields}
    assert {setting.name for setting in shown} == set(ProfilePatch.model_fields) - {"shares"} | shares
    assert all(setting.says.endswith(".") for setting in shown)


def test_the_terms_shown_are_those_whose_sum_a_score_is():
    assert list(TERMS) == list(TermsOut.model_fields)[: len(TERMS)]


def test_how_often_something_was_is_told_to_a_tenth():
    said = {0: "never", 0.0099: "hardly ever", 0.5: "0.5 times", 0.98: "once", 1: "once", 2.02: "twice", 3: "3 times"}
    assert {value: times(value) for value in said} == said


def test_each_path_belongs_to_a_page_of_the_menu():
    paths = {"/console": "/console", "/console/session": "/console/bank", "/console/cases/1": "/console/bank"}
    assert {path: section(path) for path in paths} == paths
