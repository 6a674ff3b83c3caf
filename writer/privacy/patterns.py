"""Patterns for RE2 of secrets, credentials and personal data, read from ``patterns.toml``, and of names for secrets."""

import re
from functools import partial

from retrieval.patterns import read, whole

_READ, _whole = read("writer.privacy"), partial(whole, "writer.privacy")
PASSWORDS, TOKENS, ANY_NAME, WEAK, SUFFIX, PHONE_WORDS = map(
    _whole, ("«passwords»", "«tokens»", "«any_name»", "«weak»", "«suffix»", "«phone_words»")
)
SECRETS = {kind: _whole(pattern) for kind, pattern in _READ["secrets"].items()}
PERSONAL = {kind: _whole(pattern) for kind, pattern in _READ["personal"].items()}

ARGUMENT, CALLED, SAID = "password/argument", "password/call", "password/said"
SET, KEYED = "token/set", "token/keyed"
EVERYDAY = {
    f"{kind}/{number}": _whole(pattern)
    for kind, patterns in _READ["everyday"].items()
    for number, pattern in enumerate(patterns)
}
"""Patterns of credentials by kind; marks in redacted texts show only the part of a kind before the first slash."""

SENSITIVE_KEY = re.compile(
    rf"(?i)[\w.\s/:-]*(?:(?P<password>{PASSWORDS}){SUFFIX}|(?P<token>{TOKENS}){SUFFIX}|(?P<authorization>authorization)"
    r"|(?P<weak>(?:^|[\s._-])(?:pass|pw)))(?:\s*\([^()]*\))?"
)
