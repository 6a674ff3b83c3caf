"""Candidates that say the same share a group: that of the first of them."""

from types import SimpleNamespace

from retrieval.ranking.near_duplicates import groups


def case(task: str, plan: str = "by brush", *, failed: float = 0.0) -> SimpleNamespace:
    return SimpleNamespace(task=task, plan=[plan], failed=failed)


FENCE = "paint the old wooden fence by the house"


def test_equal_plans_and_nearly_equal_words_are_one_group():
    assert groups([case("wash"), case(FENCE), case(FENCE.upper()), case(FENCE + " today")]).tolist() == [0, 1, 1, 1]


def test_another_plan_or_another_fate_is_another_group():
    assert groups([case(FENCE), case(FENCE, "by spray"), case(FENCE, failed=1.0)]).tolist() == [0, 1, 2]


def test_few_common_words_are_another_group():
    assert groups([case(FENCE), case("paint the kitchen")]).tolist() == [0, 1]


def test_nobody_is_in_no_group():
    assert groups([]).tolist() == []
