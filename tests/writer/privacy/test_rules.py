"""The rules: the library's and our own, all of them run by RE2."""

from writer.privacy.patterns import EVERYDAY, PERSONAL, SECRETS
from writer.privacy.providers import PROVIDERS
from writer.privacy.rules import KINDS, RULES, signs


def test_every_pattern_of_our_own_is_a_rule_behind_those_of_the_library():
    own = list({**SECRETS, **EVERYDAY, **PROVIDERS, **PERSONAL})
    assert [kind for kind, _ in RULES][-len(own) :] == own
    assert len(RULES) > len(own)
    assert ["unread", *(kind for kind, _ in RULES)] == KINDS[: len(RULES) + 1]


def test_the_set_tells_which_rules_match():
    places, _ = signs(b"write to ada@example.org")
    assert [RULES[place][0] for place in places] == ["email"]
    assert signs(b"nothing to see") == ([], set())
