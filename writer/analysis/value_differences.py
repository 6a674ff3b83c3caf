"""Describes the difference between two values in words, without data of the run.

Types, flags, versions, enum values, and tables and columns of a schema are quoted; ids, names, paths, texts and
secrets, which are data of the run, become placeholders. ``move_values`` decides which values are data.
"""

import math
import re
from collections.abc import Hashable, Iterable, Sequence
from decimal import Decimal
from difflib import SequenceMatcher

from retrieval.patterns import patterns, word_sets
from retrieval.text import shortened
from writer.analysis.causes import instructs
from writer.analysis.move_values import last_word, normal, placeholder_of, value_of
from writer.analysis.placeholders import kind_of
from writer.analysis.statements import Language, Token, tokens

LINE_CHARS = 160
"""Maximum characters of a command line that is quoted as a whole."""
PIECE_CHARS = 80
MOST_PIECES = 6
"""Maximum number of changes of a statement that are described."""
LONGEST_LIMIT = 100_000
"""Largest number that is quoted as a limit in a call."""

_FORMS = patterns("writer.analysis", "value_differences")
_WORDS = word_sets("writer.analysis", "value_differences")
_TIMES = (10, 100, 1000, 1_000_000, 1_000_000_000)
"""Factors between units, as of seconds and milliseconds, or of euros and cents."""


def in_place_of(name: str, before: object, after: object) -> str | None:
    """Describes the change of an argument's value; None: both values are data of the run and of the same type."""
    old, new = told(name, before), told(name, after)
    if _type(before) != _type(after) and not isinstance(before, dict | list) and not isinstance(after, dict | list):
        old, new = f"{_type(before)}{old and f' {old}'}", f"{_type(after)}{new and f' {new}'}"
    elif not old and not new:
        return None
    return f"{new or kind_of(after)} in place of {old or kind_of(before)}"


def told(name: str, value: object) -> str:
    """Returns the value of an argument as a description quotes it: texts in quotes; empty: it is data of the run."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int | float):
        bound = _FORMS["limit"].search(name) is not None and abs(value) <= LONGEST_LIMIT
        return f"{value:.15g}" if bound or not value_of(name, value).startswith("<") else ""
    if not isinstance(value, str):
        return ""
    text = value.strip()
    if re.fullmatch(r"[+-]?\d{1,6}", text):
        number = told(name, int(text))
        return number and f'"{text}"'
    is_version = "version" in normal(name) and _FORMS["version"].fullmatch(text)
    is_plain = name != "input" and re.fullmatch(r"[^\W\d_][^\d]*", text)  # without a name, a text may be anything
    is_known = name != "input" and re.search(r"\w", text) and is_technical(name, text)
    orders = " " in text and instructs(text)  # one word is a state, such as "open"
    tells = is_version or is_known or (is_plain and not value_of(name, value).startswith("<") and not orders)
    return f'"{text}"' if tells or not value else ""


def is_technical(name: str, value: str) -> bool:
    """Returns whether the value of an argument names a technology: by the argument's name, or by the value's form."""
    if _FORMS["type"].fullmatch(value) or _FORMS["region"].fullmatch(value):
        return True
    if last_word(name) in _WORDS["names"] and _FORMS["name"].fullmatch(value):
        return True
    return placeholder_of(name) is None and _FORMS["technical"].fullmatch(value) is not None


def _type(value: object) -> str:
    return {bool: "", type(None): "", str: "string", int: "number", float: "number"}.get(type(value), "")


def date_form(before: str, after: str) -> str | None:
    """Describes the change of a date's form, with 0 for each digit; None: the form is the same, or there is no date."""
    if kind_of(after) != "<date>" or not _FORMS["date"].fullmatch(after):
        return None
    old = re.sub(r"\d", "0", before) if _FORMS["date"].fullmatch(before) else kind_of(before)
    new = re.sub(r"\d", "0", after)
    if (
        old == new
        and before != after
        and sorted(_FORMS["number"].findall(before)) == sorted(_FORMS["number"].findall(after))
    ):
        return f"the same numbers of {new} in another order"
    if old == new and before != after and new.startswith("0000-00"):
        return f"{'a later' if after > before else 'an earlier'} <date> was right"
    return f"a date of the form {new} in place of {old}" if old != new else None


def digits_form(before: str, after: str) -> str | None:
    """Describes the change of the form of a number in groups, such as a telephone's; None: the form is the same."""
    if not (_FORMS["groups"].fullmatch(before) and _FORMS["groups"].fullmatch(after)):
        return None
    old, new = (re.sub(r"\d", "0", text) for text in (before, after))
    return f"the form {new} in place of {old}" if old != new else None


def affix_difference(before: str, after: str) -> str | None:
    """Describes a unit added to or taken from a number, or another scheme ("Bearer") before a secret; else None."""
    schemes = [text.partition(" ")[0] for text in (before, after)]
    if schemes[0] != schemes[1] and {scheme.casefold() for scheme in schemes} <= _WORDS["schemes"]:
        return f"{schemes[1]} in place of {schemes[0]}"
    long, short = (after, before) if len(after) > len(before) else (before, after)
    sign = long.removeprefix(short) if long.startswith(short) else ""
    if sign and _FORMS["unit"].fullmatch(sign) and short[-1:].isdigit():
        return f"the same {'with' if long is after else 'without'} `{sign}` at the end"
    return None


def number_form(name: str, before: object, after: object) -> str | None:
    """Describes the change of a number that is data by its size; None: these are no two numbers, or ids."""
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in (before, after)):
        return None
    old, new = Decimal(str(before)), Decimal(str(after))
    if placeholder_of(name) == "<id>" or not (old.is_finite() and new.is_finite()):
        return None
    for times in _TIMES:
        if old and new in {old * times, old / times}:
            return f"{times} times as much" if abs(new) > abs(old) else f"the {times}th part"
    return f"a {'larger' if new > old else 'smaller'} number was right"


def url_difference(name: str, before: str, after: str) -> str | None:
    """Describes the change of a URL: scheme, versions and words of the path, parameters; None: no URLs, or only data.

    A word of the path after a plural is quoted only if it is a plural or a version, because "users/ada" names a person.
    """
    old, new = (_FORMS["url"].fullmatch(text) for text in (before, after))
    if old is None or new is None or not ((old["scheme"] and new["scheme"]) or normal(name) in _WORDS["addresses"]):
        return None
    changes: list[str] = []
    if old["scheme"] != new["scheme"] and old["scheme"] and new["scheme"]:
        changes.append(f"{new['scheme'].casefold()} in place of {old['scheme'].casefold()}")
    one, other = ([part for part in (match["path"] or "").split("/") if part] for match in (old, new))
    for i, j, k, m in changed_ranges(one, other):
        changes += change_between("/".join(_route(one, range(i, j))), "/".join(_route(other, range(k, m))))
    queries = [
        dict(pair.partition("=")[::2] for pair in (match["query"] or "").split("&") if pair) for match in (old, new)
    ]
    for key in dict.fromkeys([*queries[0], *queries[1]]):
        if not re.fullmatch(r"[\w.\[\]-]{1,40}", key) or queries[0].get(key) == queries[1].get(key):
            continue
        gone, come = (query.get(key) for query in queries)
        shown = [value if value is not None and told(key, value) else "<value>" for value in (gone, come)]
        changes += change_between(
            "" if gone is None else f"{key}={shown[0]}", "" if come is None else f"{key}={shown[1]}"
        )
    return ", ".join(dict.fromkeys(changes)) or None


def _route(path: Sequence[str], places: Iterable[int]) -> list[str]:
    """Returns parts of a path, ids and names as placeholders."""
    shown = []
    for at in places:
        part, above = path[at], path[at - 1] if at else ""
        names = above.endswith("s") and not part.endswith("s") and _FORMS["route_part"].fullmatch(above)
        tells = _FORMS["numbered_version"].fullmatch(part) or (_FORMS["route_part"].fullmatch(part) and not names)
        shown.append(part if tells else "<id>")
    return shown


def statement_difference(before: str, after: str, language: Language) -> str:
    """Describes the words that were changed, added and left out in a statement; short command lines as a whole."""
    old, new = tokens(before, language), tokens(after, language)
    if language == "shell":
        kept = {token.text for token in old} & {token.text for token in new}
        one, other = (_shell_words(statement, kept) for statement in (old, new))
        lines = " ".join(one), " ".join(other)
        if lines[0] != lines[1] and max(map(len, lines)) <= LINE_CHARS:
            return f"`{lines[1]}` in place of `{lines[0]}`"
    else:
        one, other = _sql_words(old), _sql_words(new)
    changes: list[str] = []
    folded = ([word if word[:1] == "'" else word.casefold() for word in words] for words in (one, other))
    for i, j, k, m in changed_ranges(*folded):
        pair = [shortened(" ".join(words), PIECE_CHARS) for words in (one[i:j], other[k:m])]
        if language == "sql" and j - i == m - k == 1 and {old[i].shown, new[k].shown} == {"<identifier>"}:
            kind = "table" if i and old[i - 1].text.casefold() in _WORDS["before_table"] else "column"
            changes.append(f"{kind} {pair[1]} in place of {pair[0]}")
        else:
            changes += change_between(*(piece and f"`{piece}`" for piece in pair))
    if said := ", ".join(dict.fromkeys(changes[:MOST_PIECES])):
        return said
    pairs = zip(old, new, strict=False)  # of the same form
    kinds = dict.fromkeys(was.shown for was, now in pairs if was.text != now.text and was.shown.startswith("<"))
    return f"another {' and '.join(kinds)} was right" if kinds else "written otherwise"


def statement_told(text: str, language: Language) -> str:
    """Returns a statement as a description quotes it: strings and numbers that are data become placeholders."""
    if language == "shell":
        return " ".join(token.shown for token in tokens(text, language, concrete=True))
    return " ".join(_sql_words(tokens(text, language)))


def changed_ranges(one: Sequence[Hashable], other: Sequence[Hashable]) -> list[tuple[int, int, int, int]]:
    """Returns the places at which two sequences differ, each as a beginning and an end in the one and in the other."""
    codes = SequenceMatcher(None, one, other, autojunk=False).get_opcodes()
    return [(i, j, k, m) for change, i, j, k, m in codes if change != "equal"]


def change_between(before: str, after: str) -> list[str]:
    """Describes the change between two pieces; empty if both are the same placeholder."""
    if before == after:
        return [f"another {after.strip('`')} was right"] if after else []
    if before and after:
        return [f"{after} in place of {before}"]
    return [f"{after} added" if after else f"{before} left out"]


def _shell_words(line: Sequence[Token], kept: set[str]) -> list[str]:
    """Returns a command line: words that changed as they are, unless they are the value of a flag; else their forms."""
    before, shown = "", []
    for token in line:
        name, _, form = token.shown.rpartition("=")
        word = token.text.removeprefix(f"{name}=") if form == "<word>" else ""
        tells = _FORMS["shell_word"].fullmatch(word) and token.text not in kept and not before.startswith("-")
        shown.append(token.text if tells else token.shown)
        before = token.text
    return shown


def _sql_words(statement: Sequence[Token]) -> list[str]:
    """Returns the words of a statement; strings and numbers that are data of the run become placeholders."""
    shown, column, before = [], "", ""
    for token in statement:
        word = token.text
        is_text = word[:1] in "'\"" and before in _WORDS["compares"]
        if token.shown == "<identifier>" and not (word[:1] == '"' and is_text):
            column = word.rsplit(".", 1)[-1].strip('"`')
            shown.append(word)
        elif token.shown == "<number>":
            number = int(word) if word.isdigit() and len(word) <= len(str(LONGEST_LIMIT)) else math.nan
            shown.append(told(before if before in {"limit", "offset"} else column, number) or "<number>")
        elif token.shown.startswith("<"):
            inside = word.strip("'\"")
            shown.append(word if inside and told(column, inside) else "<string>")
        else:
            shown.append(token.shown)
        before = word.casefold()
    return shown
