"""Attacks add to a bank what they say, and the rules of the slate hold copies back."""

import numpy as np

from bench.learning import banking, poison

FLOOD = poison.Attack("copies of failures", 0.05)


def test_an_attack_adds_wrong_answers_and_changes_nothing_else(corpus: banking.Corpus):
    clean = poison.stream(corpus, None, 0, 30)
    for attack in (FLOOD, poison.Attack("forged successes", 0.05, 10, rewarded=True)):
        attacked = poison.stream(corpus, attack, 0, 30)
        honest = ~attacked.poison
        assert attacked.poison.sum() == 75
        assert attacked.questions.texts == clean.questions.texts
        for name in ("reward", "proven", "source"):
            assert np.array_equal(getattr(attacked.claims, name)[honest], getattr(clean.claims, name))
        assert set(attacked.claims.source[attacked.poison]).isdisjoint(clean.claims.source)
        assert attacked.claims.bank.wrong[attacked.poison].all()
        assert attacked.claims.proven[attacked.poison].all() == attack.rewarded


def test_the_rules_of_the_slate_leave_one_place_to_copies(corpus: banking.Corpus):
    stream = poison.stream(corpus, FLOOD, 0, 300)
    ruled, free = (poison.serve(stream, arm, 0) for arm in (poison.SERVES, poison.UNRULED))
    assert ruled.taken.max() <= 1 / poison.PLACES < free.taken.max()
