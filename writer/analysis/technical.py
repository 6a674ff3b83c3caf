"""Recognises values that name a technology, such as a version, a media type or a time zone, and no data of the run."""

from retrieval.patterns import patterns, word_sets
from writer.analysis.move_values import last_word, placeholder_of

_FORMS = patterns("writer.analysis", "technical")
_WORDS = word_sets("writer.analysis", "technical")


def is_technical(name: str, value: str) -> bool:
    """Returns whether the value of an argument names a technology: by the argument's name, or by the value's form."""
    if _FORMS["type"].fullmatch(value) or _FORMS["region"].fullmatch(value):
        return True
    if last_word(name) in _WORDS["names"] and _FORMS["name"].fullmatch(value):
        return True
    return placeholder_of(name) is None and _FORMS["technical"].fullmatch(value) is not None
