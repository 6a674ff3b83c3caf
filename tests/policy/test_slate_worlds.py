"""The rules of a slate, proven on every small world there is: all candidates of a few, with all that rules look at."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, product
from typing import NamedTuple

import numpy as np
import pytest

from policy.explore import explored
from policy.slate import DEPTH, UNPROVEN_PART, Slate, Traits, choose, may_join, most_unproven
from tests.policy.traits import traits as made

FAR, NEAR = 0.2, 0.9


class Seen(NamedTuple):
    """A candidate: where a rule looks at nothing of it, it is the first of each."""

    proven: bool = True
    near: bool = False
    source: int = 0
    failed: bool = False


class World(NamedTuple):
    """Candidates in the order of their scores, and how many places there are."""

    traits: Traits
    k: int

    @property
    def ordered(self) -> list[int]:
        return list(range(len(self.traits.group)))

    @property
    def slate(self) -> Slate:
        return choose(self.traits, self.ordered, self.k)

    def left(self, slate: Slate, *, proven: bool) -> list[int]:
        return [index for index in self.ordered if index not in slate and self.traits.proven[index] == proven]


def world(seen: Sequence[Seen], group: Sequence[int], k: int) -> World:
    columns = zip(*seen, strict=True)
    proven, near, source, failed = (np.array(column) for column in columns)
    similarity = np.where(near, NEAR, FAR).astype(np.float32)
    everyone = np.ones(len(seen), bool)
    return World(Traits(np.array(group, np.int16), failed, everyone, source.astype(np.int16), proven, similarity), k)


def partitions(size: int) -> Iterator[tuple[int, ...]]:
    """Every way to group so many candidates, each group by its first member."""
    for group in product(range(size), repeat=size):
        if all(leader <= index and group[leader] == leader for index, leader in enumerate(group)):
            yield group


def everything(size: int) -> Iterator[World]:
    """Every world of so many candidates of one source; those of one group share their fate."""
    each = [Seen(proven, near, 0, failed) for proven, near, failed in product((True, False), repeat=3)]
    for group in partitions(size):
        for seen in product(each, repeat=size):
            if all(seen[index].failed == seen[leader].failed for index, leader in enumerate(group)):
                yield from (world(seen, group, k) for k in range(1, size + 1))


def apart(size: int, *, sources: Sequence[int], places: Sequence[int]) -> Iterator[World]:
    """Every world of so many candidates that say different things, and none of which failed."""
    each = [Seen(*one) for one in product((True, False), (True, False), sources)]
    for seen in product(each, repeat=size):
        yield from (world(seen, range(size), k) for k in places)


def worlds() -> Iterator[World]:
    return chain(
        everything(1),
        everything(2),
        everything(3),
        apart(3, sources=(0, 1), places=(1, 2, 3)),
        apart(4, sources=(0, 1), places=(4,)),
        apart(5, sources=(0,), places=(3, 4)),
    )


EVERY = list(worlds())


def test_nothing_stands_that_may_not_and_no_rule_costs_a_case():
    for each in EVERY:
        traits, slate = each.traits, each.slate
        assert len({*traits.group[list(slate)].tolist()}) == len(slate)
        assert traits.failed[list(slate)].sum() <= 1
        sound, failed = (len({*traits.group[traits.failed == fate].tolist()}) for fate in (False, True))
        assert len(slate) == min(each.k, sound + min(failed, 1)), each


def test_unproven_cases_never_pass_their_limit_while_a_proven_one_is_there():
    for each in EVERY:
        slate = each.slate
        if each.traits.unproven(slate) <= most_unproven(each.k):
            continue
        for index in slate:
            if not each.traits.proven[index]:
                rest = tuple(other for other in slate if other != index)
                assert not any(may_join(each.traits, rest, other) for other in each.left(slate, proven=True)), each


def unknown(traits: Traits, similarity: float = np.nan) -> Traits:
    """Returns the candidates, all as similar to the query, or of unknown similarity."""
    return replace(traits, similarity=np.full(len(traits.group), similarity, np.float32))


@pytest.mark.parametrize("similarity", [np.nan, NEAR])
def test_an_unproven_case_that_is_no_nearer_takes_no_place_that_a_proven_one_could_have(similarity: float):
    for each in EVERY:
        traits = unknown(each.traits, similarity)
        slate = choose(traits, each.ordered, each.k)
        for index in (index for index in slate if not traits.proven[index]):
            rest = tuple(other for other in slate if other != index)
            assert not any(may_join(traits, rest, other) for other in each.left(slate, proven=True)), each


def test_an_unproven_case_has_the_place_of_a_proven_one_if_all_those_are_far_off():
    for each in EVERY:
        traits, slate = each.traits, each.slate
        near = [index for index in each.left(slate, proven=False) if traits.similarity[index] == np.float32(NEAR)]
        far = [index for index in slate if traits.proven[index] and traits.similarity[index] == np.float32(FAR)]
        all_far = len(far) == len(slate) - traits.unproven(slate)
        if traits.unproven(slate) >= most_unproven(each.k) or len(slate) < each.k or not all_far:
            continue
        for index, other in product(near, far):
            if traits.failed[index] and each.ordered.index(other) < each.ordered.index(index):
                continue  # nearness alone makes a failure no better than a success
            rest = tuple(each for each in slate if each != other)
            assert traits.group[index] == traits.group[other] or not may_join(traits, rest, index), each


def test_an_unproven_case_has_no_place_that_a_proven_one_could_have_beside_a_proven_one_as_near():
    for each in EVERY:
        traits, slate = each.traits, each.slate
        if any(traits.proven[index] and traits.similarity[index] == np.float32(NEAR) for index in slate):
            assert slate == choose(unknown(traits), each.ordered, each.k), each


def test_where_all_come_from_one_source_nothing_is_limited():
    for each in EVERY:
        if len(set(each.traits.source.tolist())) == 1:
            apart = replace(each.traits, source=np.arange(len(each.traits.group), dtype=np.int16))
            assert each.slate == choose(apart, each.ordered, each.k)


def test_no_source_has_more_than_half_while_another_of_the_class_near_the_top_is_there():
    for each in EVERY:
        traits = unknown(each.traits)
        if traits.failed.any() or len(set(traits.group.tolist())) < len(traits.group):
            continue  # of two that may not stand together one rule may take the one, and one the other
        slate = choose(traits, each.ordered, each.k)
        for proven in (True, False):
            mine = [index for index in slate if traits.proven[index] == proven]
            counts = np.bincount(traits.source[mine], minlength=2)
            over = int(counts.argmax())
            others = [index for index in each.left(slate, proven=proven) if traits.source[index] != over]
            assert counts[over] <= max(1, each.k // 2) or not others, each


def test_the_slate_is_by_score_and_the_same_each_time():
    for each in EVERY:
        assert list(each.slate) == sorted(each.slate)
        assert each.slate == each.slate


@pytest.mark.parametrize("sources", [1, 10])
def test_a_flood_of_unproven_cases_above_all_others_changes_nothing_for_the_proven_ones(sources: int):
    for plants in range(41):
        proven = np.arange(plants + 12) >= plants
        source = np.where(proven, 0, np.arange(plants + 12) % sources).astype(np.int16)
        whole = np.ones(plants + 12, bool)
        traits = made(np.arange(plants + 12, dtype=np.int16), ~whole, whole, source=source, proven=proven)
        assert choose(traits, list(range(plants + 12)), 4) == tuple(range(plants, plants + 4))


def test_of_all_that_may_be_drawn_no_slate_passes_the_limit_and_unproven_ones_have_a_small_share():
    budget = 0.05
    for each in EVERY:
        traits = unknown(each.traits)
        slate = choose(traits, each.ordered, each.k)
        lottery = explored(traits, np.zeros(len(each.ordered), np.float32), each.ordered, slate, budget)
        assert sum(lottery.chances.values()) == pytest.approx(1)
        for drawn in lottery.chances:
            assert traits.unproven(drawn) <= max(traits.unproven(slate), most_unproven(each.k))
        if slate and not traits.unproven(slate):
            places = sum(chance * traits.unproven(drawn) for drawn, chance in lottery.chances.items())
            assert places / len(slate) <= budget / 2 + 1e-9


def test_a_young_case_among_proven_ones_is_tried():
    for each in EVERY:
        traits, slate = each.traits, each.slate
        young = [index for index in each.left(slate, proven=False) if may_join(traits, slate[:-1], index)]
        lottery = explored(traits, np.zeros(len(each.ordered), np.float32), each.ordered, slate, 0.05)
        if traits.unproven(slate) < most_unproven(len(slate)):
            assert all((*slate[:-1], index) in lottery.chances for index in young), each


def test_larger_slates_have_one_unproven_place_in_four():
    assert [most_unproven(k) for k in (1, 4, 7, 8, 50)] == [1, 1, 1, 2, 12]
    traits = world([Seen(proven=False, near=True)] * DEPTH + [Seen()] * 12, range(DEPTH + 12), 12).traits
    assert traits.unproven(choose(traits, list(range(DEPTH + 12)), 12)) == 12 // UNPROVEN_PART
