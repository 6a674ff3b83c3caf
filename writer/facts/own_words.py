"""Selection of a user's own words in a turn; pasted, quoted or dictated text does not describe the user.

Text counts as pasted if it has a mark (a fence, a tag, the head of a mail, a greeting below the first line, a speaker's
label), if it stands below a request about a text, or above such a request at the end of the turn, and in doubt.
"""

import re

from retrieval.patterns import patterns
from writer.facts.forms import PACKAGE

MOST_READ = 10_000
"""Maximum number of characters of a turn that are read, from its beginning; the rest counts as pasted."""
LONGEST = 300
"""Maximum number of characters of a sentence; a longer sentence is not read."""

_FORMS, _ABROAD = patterns(PACKAGE, "own_words"), patterns(PACKAGE, "requests")
_GAP = " … "
"""Text in place of a quotation, so that no sentence is read across the quotation."""


def own_words(text: str) -> str:
    """Returns the text without what is pasted or quoted, each quotation replaced by an ellipsis."""
    text = text[:MOST_READ]
    lines = (_FORMS["block"].sub(_GAP, text) if _FORMS["quotes"].search(text) else text).splitlines()
    written = [index for index, line in enumerate(lines) if line.strip(" …\t")]
    if not written:
        return ""
    first, last = written[0], written[-1]
    if last > first and _is_about_above(lines, last):
        return _own_part(lines[last].strip())[0]
    for index in written:
        line = lines[index].strip()
        below = index > first and (_FORMS["greeting_line"].search(line) or _FORMS["rule"].search(line))
        is_mail = (
            _FORMS["salutation"].search(line)
            or _FORMS["head_of_mail"].search(line)
            or (line.endswith(":") and _FORMS["wrote"].search(line))
        )
        if below or is_mail or _FORMS["stamped"].search(line) or (":" in line and _FORMS["label"].search(line)):
            return "\n".join(lines[:index])
        own, leads = _own_part(line)
        if leads and (index < last or own != line):
            return "\n".join([*lines[:index], own])
    return "\n".join(lines)


def _own_part(line: str) -> tuple[str, bool]:
    """Returns the user's own part of a line, and whether the lines below it are pasted.

    Facts are read in the Latin script only, so that below a line in another script, a text in Latin script is pasted.
    """
    before, colon, after = line.partition(": ")
    if colon and after and _is_about_a_text(before):
        return before, True
    if line.endswith((":", "\uff1a")):
        own = (
            _FORMS["own_heading"].search(line[-LONGEST:])
            and not _FORMS["told_by"].search(line)
            and not _is_about_a_text(line)
        )
        return line, not own
    if _is_of_other_script(line):
        return line, True
    sentences = _FORMS["sentence"].split(line)
    for number, sentence in enumerate(sentences, start=1):
        if _is_about_a_text(sentence):
            follows = sentences[number] if number < len(sentences) else ""
            quoted = follows and (_FORMS["this_text"].search(sentence) or _FORMS["greeting"].match(follows))
            return " ".join(sentences[:number]) if quoted else line, True
    return line, False


def _is_about_a_text(sentence: str) -> bool:
    """Returns whether a sentence asks about a text, or announces one; a report of what the user did does neither."""
    begin = sentence[:LONGEST].lower()
    if _FORMS["did"].search(begin) and not _FORMS["told_by"].search(begin):
        return False
    return bool(
        _FORMS["about_a_text"].search(begin)
        or _FORMS["begins_request"].match(begin)
        or (_FORMS["names_a_text"].search(begin) and _FORMS["about_a_named_text"].search(begin))
        or asks_about_a_text(begin)
    )


def _is_of_other_script(line: str) -> bool:
    """Returns whether most letters of a line are of a script in which no facts are read, such as Arabic."""
    return not line.isascii() and len(_FORMS["other_script"].findall(line)) > len(_FORMS["latin"].findall(line))


def _is_about_above(lines: list[str], index: int) -> bool:
    """Returns whether a request that ends the turn is about the text above it: it stands apart, or names it."""
    line, before = lines[index].strip(), lines[index - 1]
    apart = not before.strip() or _FORMS["rule"].search(before) is not None
    if re.search(r"\b(?:above|preceding)\b", line):
        return apart or _own_part(line)[1]
    return apart and (
        _is_of_other_script(line)
        or (_own_part(line)[1] and (asks_about_a_text(line.lower()) or bool(_FORMS["about_above"].search(line))))
        or bool(_FORMS["bare_request"].search(line))
    )


def asks_about_a_text(sentence: str) -> bool:
    """Returns whether a German, Spanish or French sentence, in small letters, asks about a text or names its writer."""
    if _ABROAD["english"].search(sentence) or not _ABROAD["about_a_text"].search(sentence):
        return False
    return not _ABROAD["own_doing"].search(sentence)
