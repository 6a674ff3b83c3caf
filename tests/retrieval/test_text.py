"""Texts as they are compared."""

from retrieval.text import folded


def test_case_and_white_space_do_not_count():
    assert folded("  Restart\n the\tWEB  server ") == folded("restart the web server") == "restart the web server"


def test_folding_twice_changes_nothing():
    assert folded(folded("Straße  İ")) == folded("Straße  İ")
