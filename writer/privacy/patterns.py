"""Patterns for RE2 of secrets, credentials and personal data, read from ``patterns.toml``, and of names for secrets.

Tokens of providers are in ``providers.toml``, as the providers document them: a prefix, an alphabet and a length. Their
patterns replace the engine if it is missing, and complement it, because it finds some tokens only after a name.
"""

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

PROVIDER_TOKEN = "provider-token"  # noqa: S105 - a kind of finds
_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_PROVIDERS = read("writer.privacy", "providers.toml")
LOOSE_SIGN = r"-us\d|_mmk|\.atlasv1\.|\dQ~|[0-9a-f]{8}-[0-9a-f]{8}-|[MNO][\w-]{22}[\w-]*\.[\w-]{6}\."
"""Sign of a text that may hold a token in a form without a unique prefix."""
LOOSE = f"{PROVIDER_TOKEN}/loose"

PROVIDERS = {
    LOOSE: r"\b(?:" + "|".join(_PROVIDERS["loose"]) + r")\b",
    f"{PROVIDER_TOKEN}/form": r"\b(?:" + "|".join(_PROVIDERS["whole"]).replace("UUID", _UUID) + r")\b",
    **{
        f"{PROVIDER_TOKEN}/{number}": rf"\b(?:{'|'.join(each['prefixes'].split())}){each['rest']}(?:[._-][A-Za-z0-9]{{2,}})*"
        for number, each in enumerate(_PROVIDERS["prefixed"])
    },
}
"""Patterns of tokens by kind; marks in redacted texts do not show the part of a kind after the slash."""

ALL = {**SECRETS, **EVERYDAY, **PROVIDERS, **PERSONAL}
"""Patterns of all rules of redaction by kind, the most specific first."""
KINDS = ["unread", *ALL, ARGUMENT, SET, SAID, PROVIDER_TOKEN]
RANK = {kind: place for place, kind in enumerate(KINDS)}
"""Rank of each kind of secret; the most specific kind has the smallest rank."""
