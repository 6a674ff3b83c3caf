"""The rules: the library's and our own, all of them run by RE2."""

from writer.privacy.patterns import PERSONAL, SECRETS
from writer.privacy.rules import ANY_RULE, KINDS, RULES


def test_every_pattern_of_our_own_is_a_rule_behind_those_of_the_library():
    own = list({**SECRETS, **PERSONAL})
    assert [kind for kind, _ in RULES][-len(own) :] == own
    assert len(RULES) > len(own)
    assert ["unread", *(kind for kind, _ in RULES)] == KINDS


def test_the_set_tells_which_rules_match():
    found = ANY_RULE.Match(b"write to ada@example.org")
    assert [RULES[place][0] for place in found] == ["email"]
    assert not ANY_RULE.Match(b"nothing to see")
