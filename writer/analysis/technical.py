"""Recognises values that name a technology, such as a version, a media type or a time zone, and no data of the run."""

import re

from writer.analysis.move_values import last_word, placeholder_of

_NAMES = frozenset((
    "algorithm", "arch", "charset", "dialect", "encoding", "engine", "image", "language", "locale", "model", "platform",
    "protocol", "runtime", "timezone", "tz",
))  # fmt: skip
"""Last words in the names of arguments whose values are names of a technology."""
_NAME = re.compile(r"(?!.*\d{5})[A-Za-z][\w./:@+-]{0,40}")
_TYPE = re.compile(
    r"(?i)(?:any|array|bigint|bool|boolean|bytes|date|decimal|dict|double|float|int|integer|list|long|map|none|null"
    r"|number|object|optional|set|str|string|text|tuple|uuid|void)(?:\[\])?"
)
_FORMS = re.compile(
    r"(?:application|audio|font|image|multipart|text|video)/[\w.+*-]{1,40}"
    r"|(?i:utf-?\d{1,2}(?:-sig)?|latin-?1|cp\d{3,4}|iso-8859-\d{1,2})"
    r"|[a-z][a-z+.]{0,30}/v\d{1,2}(?:(?:alpha|beta)\d{0,2})?"
    r"|[a-z][a-z+./-]{0,30}[:@]v?\d{1,3}(?:\.\d{1,4}){0,3}(?:-[a-z]{1,12})?"
    r"|(?:alpine|c\+\+|cuda|debian|es|float|go|http|int|java|jdk|macos|node|php|py|python|ruby|sha|tls|ubuntu|uint|v|windows)"
    r"-?(?:\d{1,3}|20\d\d)(?:\.\d{1,3}){0,3}(?:-[a-z]{1,12})?"
    r"|[~^<>=]{0,2}v?\d{1,3}(?:\.\d{1,4}){1,3}(?:-[a-z]{1,12})?"
    r"|(?:Africa|America|Asia|Atlantic|Australia|Etc|Europe|Pacific)/[A-Z][A-Za-z_/+-]{1,30}"
    r"|[a-z]{2}[-_][A-Z]{2}|[-+][a-z][a-z_.]{1,40}|\d{2,5}:\d{2,5}|[rwab+]{1,3}"
    r"|(?=.*(?:yy|MM|dd|HH|mm|DD))[yYMdDHhmsSaZXzTA:./, '-]{2,40}|(?=.*%)(?:%-?[A-Za-z%]|[^\w]){1,40}|[^\w]*"
)
"""Forms of media types, encodings, versions, time zones, locales, orders, ports, and of forms of dates and numbers."""
_REGION = re.compile(r"(?:[a-z]{2,4}-){1,2}[a-z]{4,9}-?\d[a-z]?")


def is_technical(name: str, value: str) -> bool:
    """Returns whether the value of an argument names a technology: by the argument's name, or by the value's form."""
    if _TYPE.fullmatch(value) or _REGION.fullmatch(value):
        return True
    if last_word(name) in _NAMES and _NAME.fullmatch(value):
        return True
    return placeholder_of(name) is None and _FORMS.fullmatch(value) is not None
