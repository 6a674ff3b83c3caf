"""Finds the days that a sentence names, such as "next Monday", counted from the day of the turn."""

from calendar import monthrange
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from retrieval.patterns import patterns, read
from writer.facts.forms import PACKAGE

_PARTS = read(PACKAGE)["parts"]
MONTHS: tuple[str, ...] = tuple(_PARTS["months"].split("|"))
DAYS: tuple[str, ...] = tuple(_PARTS["weekdays"].split("|"))
NUMBERS = {
    word: number
    for number, word in enumerate(
        ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"), start=1
    )
} | {"a": 1, "an": 1, "a couple of": 2}
_SHIFTS = {"yesterday": -1, "last night": -1, "tomorrow": 1}
_FORMS = patterns(PACKAGE, "times")


@dataclass(frozen=True, slots=True)
class Days:
    """A range of days, from the first to the last, both included."""

    first: date
    last: date


def days_of(sentence: str, today: date) -> Days | None:
    """Returns the days that a sentence names, or None if it names no time or several."""
    times = list(_FORMS["when"].finditer(sentence))
    if len(times) != 1:
        return None
    parts = {name: text.lower() for name, text in times[0].groupdict().items() if text}
    if weekday := parts.pop("weekday", ""):
        parts = {"span": "next" if _FORMS["ahead"].search(sentence) else "last", "unit": weekday}
    try:
        return next(read(parts, today) for key, read in _READERS.items() if key in parts)
    except (ValueError, OverflowError):  # the 31st of June
        return None


def without_time(words: str) -> str:
    """Returns a text without its words that name a time."""
    return " ".join(_FORMS["when"].sub(" ", words).split())


def _span(parts: Mapping[str, str], today: date) -> Days:
    forward, unit = parts["span"] == "next", parts["unit"]
    day = next((number for number, full in enumerate(DAYS) if full.startswith(unit)), None)
    if day is not None:
        if parts["span"] == "this":
            return _one(today + timedelta(days=(day - today.weekday()) % 7))
        back = (today.weekday() - day) % 7 or 7
        return _one(today + timedelta(days=7 - back % 7 if forward else -back))
    this = parts["span"] == "this"
    by = 0 if this else 1 if forward else -1
    monday = today - timedelta(days=today.weekday()) + timedelta(weeks=by)
    if unit == "week":
        return Days(monday, monday + timedelta(days=6))
    if unit == "weekend":
        return Days(monday + timedelta(days=5), monday + timedelta(days=6))
    return _moved(today, unit, by)


def _ago(parts: Mapping[str, str], today: date) -> Days:
    count = int(NUMBERS.get(parts["count"]) or parts["count"])
    if parts["ago"] == "day":
        return _one(today - timedelta(days=count))
    if parts["ago"] == "weekend":
        return _span({"span": "this", "unit": "weekend"}, today - timedelta(weeks=count))
    if parts["ago"] == "week":
        day = today - timedelta(weeks=count)
        monday = day - timedelta(days=day.weekday())
        return Days(monday, monday + timedelta(days=6))
    return _moved(today, parts["ago"], -count)


def _few(parts: Mapping[str, str], today: date) -> Days:
    """Returns the range from five to two units ago, because "a few" is no exact number."""
    days = {"day": 1, "week": 7, "month": 30, "year": 365}[parts["few_of"]]
    return Days(today - timedelta(days=5 * days), today - timedelta(days=2 * days))


def _whole_month(parts: Mapping[str, str], today: date) -> Days:
    """Returns a month; without a year, the month nearest to the day of the turn."""
    month, year = _number_of(parts["month3"]), parts.get("year3")
    years = [int(year)] if year else [today.year + shift for shift in (-1, 0, 1)]
    firsts = [date(each, month, 1) for each in years]
    first = min(firsts, key=lambda each: abs(each - today.replace(day=1)))
    return Days(first, first.replace(day=monthrange(first.year, month)[1]))


def _number_of(month: str) -> int:
    return next(number for number, full in enumerate(MONTHS, start=1) if full.startswith(month[:3]))


def _moved(today: date, unit: str, by: int) -> Days:
    """Returns the whole month or year that lies `by` units after the current one."""
    if unit == "year":
        return Days(date(today.year + by, 1, 1), date(today.year + by, 12, 31))
    year, month = divmod(today.year * 12 + today.month - 1 + by, 12)
    return Days(date(year, month + 1, 1), date(year, month + 1, monthrange(year, month + 1)[1]))


def _in_month(parts: Mapping[str, str], today: date) -> Days:
    """Returns a day of a month; without a year, the one nearest to the day of the turn."""
    month = _number_of(parts.get("month") or parts["month2"])
    day, year = int(parts.get("dom") or parts["dom2"]), parts.get("year") or parts.get("year2")
    if year:
        return _one(date(int(year), month, day))
    near = [today.year + shift for shift in (-1, 0, 1)]
    years = [date(each, month, day) for each in near if day <= monthrange(each, month)[1]]
    return _one(min(years, key=lambda each: abs(each - today)))


def _one(day: date) -> Days:
    return Days(day, day)


_READERS: Mapping[str, Callable[[Mapping[str, str], date], Days]] = {
    "day": lambda parts, today: _one(today + timedelta(days=_SHIFTS.get(parts["day"], 0))),
    "span": _span,
    "ago": _ago,
    "few": _few,
    "other": lambda _, today: Days(today - timedelta(days=7), today - timedelta(days=2)),
    "month3": _whole_month,
    "month": _in_month,
    "month2": _in_month,
    "iso": lambda parts, _: _one(date.fromisoformat(parts["iso"])),
    "only": lambda parts, _: Days(date(int(parts["only"]), 1, 1), date(int(parts["only"]), 12, 31)),
}
"""Functions that turn a match of `_WHEN` into days, by the group that matched; the first of the groups counts."""
