"""Who is killed: in the shares that were said, in the same order for the same seed."""

from collections import Counter

from bench.faults.victims import VICTIMS, deck


def test_of_twenty_kills_each_victim_has_its_share_and_a_seed_gives_one_order():
    killed = deck(200, seed=1)
    assert Counter(killed)["backend"] == 60
    assert Counter(killed)["service"] == 40
    assert set(killed[:20]) == set(VICTIMS)
    assert killed == deck(200, seed=1) != deck(200, seed=2)
    assert deck(20, seed=1) == killed[:20]


def test_one_victim_alone_can_be_killed():
    assert deck(7, seed=1, only=["backend"]) == ["backend"] * 7
