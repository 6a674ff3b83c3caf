"""Patterns for RE2 of secrets and personal data in texts, and names of fields whose values are secrets.

If a pattern has groups, only the group is redacted, and the text around it stays.
"""

import re

from writer.privacy.numbers import PHONE_WORDS

PASSWORDS = (
    r"(?:pass(?:word|wd|phrase|code|wort)|pwd|kennwort|contrase(?:ñ|n)a|mot[ _-]de[ _-]passe|motdepasse|senha|wachtwoord"
    r"|пароль|密码|パスワード|(?:admin|app|db|ftp|key|mail|my|pg|redis|root|smtp|ssh|store|sudo|trust|user)[_-]?(?:pass|pw)"
    r"|requirepass|masterauth|identified\s{1,3}(?:with\s{1,3}\w{1,40}\s{1,3})?by)"
)
TOKENS = (
    r"(?:(?:access|account|api|app|auth|client|encryption|master|private|secret|service|session|shared|signing)[_.-]?key"
    r"|(?:auth|nonce|secret|session|security)[_.-]?salt|redis[_-]auth|secret|token|credential)"
)
ANY_NAME = f"{PASSWORDS}|{TOKENS}"
SUFFIX = (
    r"(?:s|[_.-]?(?:base|confirm(?:ation)?|data|hash|plain(?:text)?|prod(?:uction)?|str(?:ing)?|text|value)"
    r"|[_.-](?:b64|base64|default|dev|live|main|new|old|primary|root|secondary|stag(?:e|ing)|test|v?\d{1,3})|\d{1,3})?"
)
"""Endings with which a name for a secret remains one: PASSWORD_PROD, secretKeyBase, password2."""
_QUOTE = r"\\*[\"'`]"  # at whatever depth of JSON inside JSON
_ASSIGN = (
    rf"(?:(?:{_QUOTE})?\]?(?:\s{{0,3}}|[ \t]{{0,24}})(?::=|=>|==?|:)\s{{0,3}}"
    rf"|{_QUOTE}\s{{0,3}},\s{{0,3}}{_QUOTE}value{_QUOTE}\s{{0,3}}:\s{{0,3}})"
)
# Inside n-fold JSON a quote that delimits has 1, 3 or 7 backslashes before it, and one inside the value has more.
_NESTED = "|".join(rf"\\{{{n}}}\"((?:[^\"\\\n]|\\{{{n + 1},}}\"?)+)" for n in (1, 3, 7))
QUOTED = rf"""(?:"((?:[^"\\\n]|\\[^\n])+)|`([^`\n]+)|'((?:[^'\\\n]|\\[^\n])+)|{_NESTED}|\\+["']([^"'\\\n]+))"""
_BARE = r"""([^\s"'`\\,;&<>(){}\[\]|]+)"""


def _assigned(name: str) -> str:
    """Returns the pattern of a value with this name: assigned, passed as an option, or inside an XML tag."""
    return (
        rf"(?i)(?:{name}{SUFFIX}(?:\s?:\s?(?:str|string|char\[\]))?{_ASSIGN}|(?:^|\s)--?[\w-]*{name}{SUFFIX} {{1,2}}"
        rf"|<[\w:.-]*{name}{SUFFIX}>)(?:{QUOTED}|{_BARE})"
    )


SECRETS = {
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
    "password": rf"{_assigned(PASSWORDS)}|{PASSWORDS}[ \t]{{1,3}}(?:{QUOTED}|is:?\s{{1,3}}(?:{QUOTED}|{_BARE}))",
    "token": _assigned(TOKENS),
}
PERSONAL = {
    "email": r"[\w.%+-]+@[a-zA-Z0-9-]+(?:\.[a-zA-Z0-9-]+)*\.[a-zA-Z]{2,}",
    # The issuers' prefixes, for one number in ten passes Luhn's test; and no digits of a decimal fraction.
    "payment-card": (
        r"(?:^|[^\w.])((?:4\d|5[1-5]|2[2-7]|35|6[045])\d{14}|3[47]\d{13}"
        r"|[2-6]\d{3}[ -]\d{4}[ -]\d{4}[ -]\d{4}|3[47]\d\d[ -]\d{6}[ -]\d{5})\b"
    ),
    "card-code": (
        rf"(?i)\b(?:cvc|cvv|(?:card[ _-]?)?(?:security|verification)[ _-]?code)2?(?:{_QUOTE})?(?:\s?[:=#]\s?|\s(?:is\s)?)(?:{_QUOTE})?(\d{{3,4}})\b"
    ),
    "iban": r"\b[A-Z]{2}\d\d(?:[A-Z0-9]{11,30}|(?: [A-Z0-9]{4}){2,7}(?: [A-Z0-9]{1,3})?)\b",
    # A bare run of digits is an id; a phone number has a plus, groups, or a field that says so.
    "phone": (
        r"(?:^|[^\w+])(\+[1-9]\d{0,2}(?:[ .()/-]{0,2}\d){6,12})\b"
        r"|(?:^|[^\w.+#-])((?:1[ .-])?(?:\(\d{3}\) ?|\d{3}[ .-])\d{3}[ .-]\d{4})\b"
    ),
    "phone/abroad": r"(?:^|[^\w.+#/:-])(0(?:0|11[ .-])[1-9]\d{0,2}[ .()/-]{1,2}\d(?:[ .()/-]{0,2}\d){5,11})\b",
    "ssn": r"(?:^|[^\w.+#-])(\d{3}-\d{2}-\d{4})\b",
    "ssn/field": (
        rf"(?i)\b(?:ssn|social[_ ]security(?:[_ ](?:no|number))?)(?:{_QUOTE})?(?:\s?[:=#]\s?|\s(?:is\s)?)(?:{_QUOTE})?"
        r"(\d{3}[- ]?\d{2}[- ]?\d{4})\b"
    ),
    "phone/field": (rf"(?i){PHONE_WORDS}(?:{_QUOTE})?\s?[:=]\s?(?:{_QUOTE})?([+(]?\d[\d ()./-]{{5,18}}\d)\b"),
    "phone/near": rf"(?i){PHONE_WORDS}[^\d\n,;{{}}\[\]+]{{0,24}}?(\(?\d[\d ()./-]{{5,18}}\d)\b",
    # With the trunk prefix, or an area's code in brackets, or a mobile number in the groups of its country.
    "phone/national": (
        r"(?:^|[^\w.+#/:-])("
        r"0[1-9]\d{1,4}(?:[ /-]| ?[/-] ?)\d{5,9}"
        r"|0[1-9]\d{0,4}[ ./-]\d{3,5}[ .-]\d{3,5}"
        r"|0[1-9](?:[ .-]\d\d){4}"
        r"|0[1-9]\d{1,3}[ ./-]\d{2,3}[ .-]\d{2,3}[ .-]\d{2,3}"
        r"|(?:8[ -]?)?\(0?\d{2,5}\)[ -]?\d{3,5}[ -]?\d{2,5}(?:[ -]?\d\d)?"
        r"|8[ -]\d{3}[ -]\d{3}[ -]\d\d[ -]\d\d"
        r"|1[3-9]\d[ -]?\d{4}[ -]?\d{4}"
        r"|[6-9]\d{4}[ -]\d{5}"
        r"|[1-9]\d[ -]9\d{4}-\d{4}"
        r"|(?:33|55|56|81)[ -]\d{4}[ -]\d{4}"
        r"|0[1-9]\d{8,9}"
        r")\b"
    ),
}

SENSITIVE_KEY = re.compile(
    rf"(?i)[\w.\s/:-]*(?:(?P<password>{PASSWORDS}){SUFFIX}|(?P<token>{TOKENS}){SUFFIX}|(?P<authorization>authorization)"
    r"|(?P<weak>(?:^|[\s._-])(?:pass|pw)))"
)
