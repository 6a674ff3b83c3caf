"""Redaction of secrets and personal data, before anything is stored, logged or embedded.

The fixed token formats come from the `detect_secrets` library; the patterns here are for what it lacks: newer
formats, assignments, credentials in headers and URLs. RE2 runs all of them, so time is linear whatever the text.
A text is scanned once by the set of all rules, and only a rule that the set reports is run by itself.
"""

import pkgutil
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Protocol, TypeVar, cast

import phonenumbers
import re2
from detect_secrets import plugins
from detect_secrets.plugins.base import RegexBasedDetector
from stdnum import iban, luhn

Json = TypeVar("Json")

MOST_CANDIDATES = 10_000  # candidates of one rule in one text; what comes after them is cut, not trusted
MOST_PASSES = 8  # a replacement may uncover a neighbour; a text that needs more than this was made to
MOST_DEPTH = 250  # orjson writes no deeper value
SHORTEST = 6  # no rule matches less: a@b.co
SHORTEST_KEY, LONG_KEY = 8, 20  # a long key may do without a digit
SHORTEST_QUOTED, SHORTEST_BARE = 3, 4  # a password's
SET_MEMORY_BYTES = 32 << 20

# Their matches swallow the words around the secret, or take a lockfile's sha512 for a key; there are own ones below.
_PLUGINS_LEFT_OUT = {"artifactory", "azure_storage_key", "basic_auth", "npm", "private_key"}
_KEYWORD_AT_A_DISTANCE = ".{0,"

_PASSWORDS = (
    r"(?:pass(?:word|wd|phrase|code)|pwd|(?:admin|db|ftp|mail|my|redis|root|smtp|user)[_-]?pass|identified\s{1,3}by)"
)
_TOKENS = (
    r"(?:(?:access|account|api|auth|client|encryption|master|private|secret|service|shared|signing)[_.-]?key"
    r"|secret|token|credential)"
)
_QUOTE = r"\\*[\"'`]"  # at whatever depth of JSON inside JSON
_ASSIGN = (
    rf"(?:(?:{_QUOTE})?\]?\s{{0,3}}(?::=|=>|==?|:)\s{{0,3}}"
    rf"|{_QUOTE}\s{{0,3}},\s{{0,3}}{_QUOTE}value{_QUOTE}\s{{0,3}}:\s{{0,3}})"
)
# Inside n-fold JSON a quote that delimits has 1, 3 or 7 backslashes before it, and one inside the value has more.
_NESTED = "|".join(rf"\\{{{n}}}\"((?:[^\"\\\n]|\\{{{n + 1},}}\"?)+)" for n in (1, 3, 7))
_QUOTED = rf"""(?:"((?:[^"\\\n]|\\[^\n])+)|'((?:[^'\\\n]|\\[^\n])+)|{_NESTED}|\\+["']([^"'\\\n]+))"""
_BARE = r"""([^\s"'`\\,;&<>(){}\[\]|]+)"""


def _assigned(name: str) -> str:
    """The pattern of a value that is given to such a name: assigned, passed as an option, or inside an XML tag."""
    return rf"(?i)(?:{name}{_ASSIGN}|--[\w-]*{name} {{1,2}}|<[\w:]*{name}>)(?:{_QUOTED}|{_BARE})"


_SECRETS = {
    "private-key": r"-----BEGIN[A-Z0-9 ]* PRIVATE KEY[A-Z ]*-----(?:[^-\"']|-[^-\"'])*(?:-----END[A-Z0-9 ]*-{0,5})?",
    "github-token": r"\b(?:github_pat_\w{22,}|gh[oprsu]_\w{36,})",
    "gitlab-token": r"\bgl(?:agent|cbt|dt|ft|pat|ptt|rt|soat)-[\w-]{20,}",
    "slack-token": r"\bxox[a-z](?:-\w{8,})+|\bxapp-\d(?:-\w{8,})+",
    "stripe-access-key": r"\b(?:[rs]k_(?:live|test)_|whsec_)\w{16,}",
    "anthropic-key": r"\bsk-ant-[\w-]{16,}",
    "openai-key": r"\bsk-(?:proj-|svcacct-|admin-)?[\w-]{20,}",
    "google-key": r"\b(?:AIza[\w-]{35}|ya29\.[\w-]{20,}|GOCSPX-[\w-]{28})",
    "npm-tokens": r"\bnpm_[A-Za-z0-9]{36}",
    "pypi-token": r"\bpypi-[\w-]{50,}",
    "huggingface-token": r"\bhf_[A-Za-z0-9]{34}",
    "telegram-token": r"\b\d{8,10}:AA[\w-]{33}",
    "basic-auth-credentials": r"\b[a-zA-Z][a-zA-Z0-9+.-]*://[^\s:/?#@\"'\\<>]*:([^\s/\"'<>\\]+)@",
    "authorization": (
        rf"(?i)authorization(?:{_QUOTE})?\s{{0,3}}[:=]\s{{0,3}}(?:{_QUOTE})?"
        r"(?:(?:apikey|basic|bearer|digest|token)\s{1,3})?([\w.~+/=:-]{8,})|\b(?:basic|bearer) {1,3}([\w.~+/=-]{16,})"
    ),
    "password": rf"{_assigned(_PASSWORDS)}|{_PASSWORDS}\s{{1,3}}(?:{_QUOTED}|is:?\s{{1,3}}(?:{_QUOTED}|{_BARE}))",
    "token": _assigned(_TOKENS),
}
_PERSONAL = {
    "email": r"[\w.%+-]+@[a-zA-Z0-9-]+(?:\.[a-zA-Z0-9-]+)*\.[a-zA-Z]{2,}",
    # The issuers' prefixes, for one number in ten passes Luhn's test; and no digits of a decimal fraction.
    "payment-card": (
        r"(?:^|[^\w.])((?:4\d|5[1-5]|2[2-7]|35|6[045])\d{14}|3[47]\d{13}"
        r"|[2-6]\d{3}[ -]\d{4}[ -]\d{4}[ -]\d{4}|3[47]\d\d[ -]\d{6}[ -]\d{5})\b"
    ),
    "iban": r"\b[A-Z]{2}\d\d(?:[A-Z0-9]{11,30}|(?: [A-Z0-9]{4}){2,7}(?: [A-Z0-9]{1,3})?)\b",
    # A bare run of digits is an id; a phone number has a plus, groups, or a field that says so.
    "phone": (
        r"(?:^|[^\w+])(\+[1-9]\d{0,2}(?:[ .()/-]{0,2}\d){6,12})\b"
        r"|(?:^|[^\w.+#-])((?:1[ .-])?(?:\(\d{3}\) ?|\d{3}[ .-])\d{3}[ .-]\d{4})\b"
    ),
    "phone-field": (
        rf"(?i)(?:\b|_)(?:cell|fax|mobile|phone|tel|telephone)(?:[_ ]?(?:no|number))?(?:{_QUOTE})?\s?[:=]\s?"
        rf"(?:{_QUOTE})?([+(]?\d[\d ()./-]{{5,18}}\d)\b"
    ),
}

_STANDS_FOR_A_VALUE = re.compile(
    rb"\$\d+|\$[A-Z_][A-Z0-9_]*|\$?\{.*\}|<.*>|%\(?\w*\)?s?|:[a-z_]+|[*.?xX]+|(?i:null|none|nil|true|false|undefined)"
    rb"|\[REDACTED:[a-z-]+\]"
)
_PATH = re.compile(rb"(?:~|\.{1,2})?/[\w./-]*")  # PWD=/srv/app
_DOTTED_NAME = re.compile(rb"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")  # ON u.password=t.password
_ESCAPED = re.compile(r"(?<!\\)\\++(?:u00([2-7][0-9a-fA-F])|/)")
_LAST_GROUP = re.compile(r"[ .()/-]+\w+$")
_SENSITIVE_KEY = re.compile(
    rf"(?i)[\w.\s-]*(?:(?P<password>{_PASSWORDS})|(?P<token>{_TOKENS})|(?P<authorization>authorization))"
)
_DIGIT, _LETTER = re.compile(rb"\d"), re.compile(rb"[a-zA-Z]")
_QUOTES = {b'"', b"'"}


class _Match(Protocol):
    def span(self, group: int = 0, /) -> tuple[int, int]: ...
    def start(self, group: int = 0, /) -> int: ...
    def end(self, group: int = 0, /) -> int: ...


class _Regex(Protocol):
    """An expression of RE2, which ships no types."""

    @property
    def pattern(self) -> str: ...
    @property
    def groups(self) -> int: ...
    def search(self, data: bytes, start: int = 0, /) -> _Match | None: ...


class _Set(Protocol):
    """A set of RE2's expressions, scanned together."""

    def Match(self, data: bytes, /) -> list[int]:  # noqa: N802 - RE2's name
        """The places of the expressions that match."""
        ...


@dataclass(frozen=True, slots=True)
class Redaction:
    """How many finds of one kind were taken out."""

    kind: str
    count: int


def redact_text(text: str) -> tuple[str, Counter[str]]:
    """The text with each find replaced by `[REDACTED:kind]`, and how many of each kind there were."""
    if len(text) < SHORTEST:
        return text, Counter()
    plain = _ESCAPED.sub(_unescaped, text) if "\\u00" in text or "\\/" in text else text
    data = plain.encode("utf-8", "surrogatepass")
    if not _ALL.Match(data):  # as good as every text: one scan, and nothing else
        return text, Counter()
    data, found = _redacted(data)
    return (data.decode("utf-8", "surrogatepass") if found else text), found


def redact(value: Json) -> tuple[Json, list[Redaction]]:
    """The JSON value with its strings and keys redacted, and the finds by kind, in the order of their names.

    It keeps its shape; only an integer that is a password becomes a text.
    """
    if _is_clean(value):
        return value, []
    found: Counter[str] = Counter()
    clean = _walk(value, "", found, MOST_DEPTH)
    return cast("Json", clean), [Redaction(kind, count) for kind, count in sorted(found.items())]


def _is_clean(value: object) -> bool:
    """Whether one scan of all the strings together shows that there is nothing to take out; most runs are so."""
    strings = _strings(value)
    if strings is None:
        return False
    text = "\n".join(strings)  # no rule is bound to the end of a text, and each sees the start of one here
    return "\\u00" not in text and "\\/" not in text and not _ALL.Match(text.encode("utf-8", "surrogatepass"))


def _strings(value: object) -> list[str] | None:
    """The value's strings and keys; None if its depth or a key asks for a closer look."""
    strings: list[str] = []
    level = [value]
    for _ in range(MOST_DEPTH):
        below: list[object] = []
        for item in level:
            if isinstance(item, str):
                strings.append(item)
            elif isinstance(item, dict):
                if any(map(_sensitive_name, item)) or ("value" in item and _sensitive(item.get("name"))):
                    return None
                strings += item
                below += item.values()
            elif isinstance(item, list):
                below += item
        if not below:
            return strings
        level = below
    return None


def _walk(value: object, sensitive: str, found: Counter[str], depth: int) -> object:
    if isinstance(value, str):
        return _clean(value, sensitive, found)
    if not depth and isinstance(value, dict | list):
        return _mark("too-deep", found)
    if isinstance(value, dict):
        return _walk_dict(value, found, depth)
    if isinstance(value, list):
        return [_walk(item, sensitive, found, depth - 1) for item in value]
    return _mark(sensitive, found) if sensitive == "password" and type(value) is int else value


def _walk_dict(value: Mapping[str, object], found: Counter[str], depth: int) -> dict[str, object]:
    named = _sensitive(value.get("name"))  # {"name": "DB_PASSWORD", "value": "..."}
    clean: dict[str, object] = {}
    for key, item in value.items():
        name = free = _clean(key, "", found)
        copy = 1
        while free in clean:  # two addresses as keys must not become one entry
            copy += 1
            free = f"{name} ({copy})"
        clean[free] = _walk(item, _sensitive(key) or (named if key == "value" else ""), found, depth - 1)
    return clean


def _sensitive(key: object) -> str:
    """The kind of secret that a key of this name holds, or an empty string."""
    return _sensitive_name(key) if isinstance(key, str) else ""


@lru_cache(maxsize=4096)  # the same few names come in every run
def _sensitive_name(key: str) -> str:
    match = _SENSITIVE_KEY.fullmatch(key)
    return (match and match.lastgroup) or ""


def _clean(text: str, sensitive: str, found: Counter[str]) -> str:
    data = text.encode("utf-8", "surrogatepass") if sensitive else b""
    if data.strip() and not _PATH.fullmatch(data) and _is_real(data, 0, len(data)):
        return _mark(sensitive, found)
    clean, finds = redact_text(text)
    if finds:
        found.update(finds)
    return clean


def _mark(kind: str, found: Counter[str]) -> str:
    found[kind] += 1
    return f"[REDACTED:{kind}]"


def _unescaped(match: re.Match[str]) -> str:
    r"""The character behind `\u0040` or `\/`, at whatever depth of JSON inside JSON; quotes stay, they delimit."""
    char = chr(int(match[1], 16)) if match[1] else "/"
    return match[0] if char in "\"'\\\x7f" else char


def _redacted(data: bytes) -> tuple[bytes, Counter[str]]:
    """The bytes after redacting until nothing more is found, so that a second call changes nothing."""
    found: Counter[str] = Counter()
    for _ in range(MOST_PASSES):
        data, finds = _pass(data)
        if not finds:
            return data, found
        found += finds
    return b"[REDACTED:unread]", Counter(unread=1)


def _pass(data: bytes) -> tuple[bytes, Counter[str]]:
    found: Counter[str] = Counter()
    hits = [_RULES[index] for index in _ALL.Match(data) or ()]
    # Secrets go first: an e-mail address inside a connection string must not cut it in two.
    for stage in (_SECRETS, _PERSONAL):
        rules = [(kind, regex) for kind, regex in hits if (kind in _PERSONAL) is (stage is _PERSONAL)]
        data = _replace(data, [span for kind, regex in rules for span in _finds(kind, regex, data)], found)
    return data, found


def _finds(kind: str, regex: _Regex, data: bytes) -> Iterator[tuple[int, int, str]]:
    """The start, end and kind of each find, in bytes; a rejected quoted value is searched again inside."""
    check = _CHECKS.get(kind, _is_real)
    position = candidates = 0
    while match := regex.search(data, position):
        candidates += 1
        if candidates > MOST_CANDIDATES:
            yield match.start(), len(data), "unread"
            return
        start, end = next((match.span(i) for i in range(1, regex.groups + 1) if match.end(i) > 0), match.span())
        position = match.end()
        if check(data, start, end):
            yield start, end, kind
        elif match.start() < start and data[start - 1 : start] in _QUOTES:
            position = start


def _replace(data: bytes, spans: list[tuple[int, int, str]], found: Counter[str]) -> bytes:
    """The bytes with each run of overlapping spans replaced by one marker, named by the most specific kind."""
    runs: list[tuple[int, int, str]] = []
    for start, end, kind in sorted(spans):
        if runs and start < runs[-1][1]:
            first, last, other = runs.pop()
            runs.append((first, max(last, end), min(kind, other, key=_KINDS.index)))
        else:
            runs.append((start, end, kind))
    pieces: list[bytes] = []
    kept = 0
    for start, end, kind in runs:
        pieces += data[kept:start], _mark(kind, found).encode()
        kept = end
    return b"".join([*pieces, data[kept:]])


def _is_real(data: bytes, start: int, end: int) -> bool:
    return not _STANDS_FOR_A_VALUE.fullmatch(data, start, end)


def _is_random(data: bytes, start: int, end: int) -> bool:
    """Whether it looks like a key: long enough, no sentence, no word, no plain number."""
    value = data[start:end]
    if len(value) < SHORTEST_KEY or len(value.split()) != 1 or not _is_real(data, start, end):
        return False
    return bool(_DIGIT.search(value) and _LETTER.search(value)) or (
        len(value) >= LONG_KEY and _is_mixed(value) and not _DOTTED_NAME.fullmatch(value)
    )


def _is_credential(data: bytes, start: int, end: int) -> bool:
    return _is_random(data, start, end) or (_is_real(data, start, end) and _is_mixed(data[start:end]))


def _is_mixed(value: bytes) -> bool:
    return not (value.islower() or value.isupper() or value.istitle())


def _is_password(data: bytes, start: int, end: int) -> bool:
    """Whether it is a password, and no word of prose or code; quoted or right behind `=` a plain word is one, too."""
    value, before = data[start:end], data[start - 1 : start]
    if _PATH.fullmatch(value) or not _is_real(data, start, end):
        return False
    if before in _QUOTES:
        return len(value) >= SHORTEST_QUOTED
    if len(value) < SHORTEST_BARE or _DOTTED_NAME.fullmatch(value):
        return False
    return before in {b"=", b">"} or not value.rstrip(b".:!?").replace(b"_", b"").isalpha()


def _is_card(data: bytes, start: int, end: int) -> bool:
    return bool(luhn.is_valid(data[start:end].translate(None, b" -").decode()))


def _is_iban(data: bytes, start: int, end: int) -> bool:
    return any(map(iban.is_valid, _readings(data, start, end)))


def _is_phone(data: bytes, start: int, end: int) -> bool:
    """Whether the number exists; one in national form is tried as North American."""
    return any(map(_exists, _readings(data, start, end)))


def _exists(number: str) -> bool:
    try:
        return bool(phonenumbers.is_valid_number(phonenumbers.parse(number, "US")))
    except phonenumbers.NumberParseException:
        return False


def _readings(data: bytes, start: int, end: int) -> list[str]:
    """The candidate, and what is left without its last group and its last two, which may be another number's."""
    whole = data[start:end].decode()
    shorter = _LAST_GROUP.sub("", whole)
    return list(dict.fromkeys([whole, shorter, _LAST_GROUP.sub("", shorter)]))


def _library_rules() -> Iterator[tuple[str, str]]:
    """The kind and pattern of each rule of the library that takes out no more than the secret."""
    names = {module.name for module in pkgutil.iter_modules(plugins.__path__)} - _PLUGINS_LEFT_OUT
    for name in sorted(names):
        import_module(f"{plugins.__name__}.{name}")
    for plugin in RegexBasedDetector.__subclasses__():
        kind = str(plugin.secret_type).lower().replace(" ", "-")
        for rule in vars(plugin)["denylist"] if plugin.__module__.rpartition(".")[2] in names else ():
            if _KEYWORD_AT_A_DISTANCE not in rule.pattern:
                yield kind, f"(?i){rule.pattern}" if rule.flags & re.IGNORECASE else rule.pattern


def _compiled(patterns: Iterable[tuple[str, str]], *, capture: bool) -> Iterator[tuple[str, _Regex]]:
    """The kind and the RE2 expression of each pattern that RE2 can run; it has no look-around."""
    options = re2.Options()
    options.log_errors, options.never_capture = False, not capture
    for kind, pattern in patterns:
        with suppress(re2.error):
            yield kind, re2.compile(pattern, options)


def _set_of(rules: Sequence[tuple[str, _Regex]]) -> _Set:
    """The set that tells in one scan which of the rules match a text, by their places in the list."""
    options = re2.Options()
    options.max_mem = SET_MEMORY_BYTES
    rules_set = re2.Set.SearchSet(options)
    for _, regex in rules:
        rules_set.Add(regex.pattern)
    rules_set.Compile()
    return cast("_Set", rules_set)


_CHECKS = {
    "authorization": _is_credential,
    "iban": _is_iban,
    "openai-key": _is_random,
    "password": _is_password,
    "payment-card": _is_card,
    "phone": _is_phone,
    "token": _is_random,
}
_OWN = {**_SECRETS, **_PERSONAL}
_RULES = [*_compiled(_library_rules(), capture=False), *_compiled(_OWN.items(), capture=True)]
_ALL = _set_of(_RULES)
_KINDS = ["unread", *(kind for kind, _ in _RULES)]
