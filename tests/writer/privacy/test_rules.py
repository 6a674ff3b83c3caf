"""The rules, all of them run by RE2."""

from writer.privacy.patterns import EVERYDAY, KINDS, PERSONAL, PROVIDERS, SECRETS
from writer.privacy.rules import RULES, signs


def test_every_pattern_is_a_rule_and_has_a_kind():
    assert [kind for kind, _ in RULES] == list({**SECRETS, **EVERYDAY, **PROVIDERS, **PERSONAL})
    assert ["unread", *(kind for kind, _ in RULES)] == KINDS[: len(RULES) + 1]


def test_the_set_tells_which_rules_match():
    places, _ = signs(b"write to ada@example.org")
    assert [RULES[place][0] for place in places] == ["email"]
    assert signs(b"nothing to see") == ([], set())
