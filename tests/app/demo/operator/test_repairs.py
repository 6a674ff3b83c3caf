"""A plan names repairs by their titles."""

from app.demo.operator.repairs import REPAIRS, named_in


def test_titles_are_told_apart_in_a_plan():
    assert [named_in(f"apply repair: {repair.title}") for repair in REPAIRS] == list(REPAIRS)
