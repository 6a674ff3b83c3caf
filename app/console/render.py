"""Renders templates. Stored text is untrusted: it is escaped, and invisible characters are made visible."""

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from app.console import charts, words
from app.console.charts import MINUS
from retrieval.text import shortened

UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0d\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
    "|(?<=[\ufe0e\ufe0f])[\ufe0e\ufe0f]"  # one alone shows an emoji as a picture or as a letter
)
"""Invisible characters, halves of characters and those that reorder text; they are shown as code points.

So they mislead no reader, and hide no text between the letters.
"""
MOST_JSON_CHARS = 20_000
"""Maximum characters of one value on a page; an export has the whole value."""
MOST_ARGUMENTS, MOST_VALUE_CHARS = 6, 60
"""Maximum number of arguments, and characters of each, in the line of a tool call; its details have all."""
NOTHING = "\u2013"

STATIC = {"console.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml"}


def visible(value: object) -> object:
    """Returns the text of a value for a template: invisible characters as code points, a dash for None."""
    if value is None:
        return NOTHING
    if hasattr(value, "__html__") or not isinstance(value, str):
        return value
    return UNSEEN.sub(lambda match: f"⟨U+{ord(match.group()):04X}⟩", value)


def form_value(value: str) -> Markup:
    """Returns a text for a field of a form, which sends it back unchanged: invisible characters as references."""
    return Markup(UNSEEN.sub(lambda match: f"&#{ord(match.group())};", escape(value)))  # noqa: S704 - escaped


def with_commas(names: Iterable[str]) -> str:
    """Returns the names with commas between them; a name with a comma or quotes stands in double quotes."""
    return ", ".join('"{}"'.format(name.replace('"', '""')) if {",", '"'} & {*name} else name for name in names)


def on_one_line(name: str) -> str:
    """Returns a name for a line of a form; as a JSON string if the line would not be read as the name otherwise."""
    is_plain = name.splitlines() == [name] == [name.strip()] and not name.startswith('"')
    return name if is_plain else json.dumps(name)


def when(value: datetime | date | None) -> object:
    """Returns a time in UTC to the minute, as an HTML time element."""
    if value is None:
        return NOTHING
    shown = f"{value:%Y-%m-%d %H:%M}" if isinstance(value, datetime) else value.isoformat()
    return Markup('<time datetime="{}">{}</time>').format(value.isoformat(), shown)


def ago(value: timedelta | None) -> str:
    """Returns an age in words, in a fitting unit."""
    if value is None:
        return "never"
    seconds = value.total_seconds()
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}s ago"
    return f"{seconds:.0f} s ago"


def days(value: float) -> str:
    """Returns a number of days in words."""
    if value < 1:
        return "less than a day"
    whole = math.ceil(value)
    return "1 day" if whole == 1 else f"{whole:,} days"


def number(value: float | None, digits: int = 2) -> str:
    """Returns a number with the given digits after the point; an integer without."""
    if value is None:
        return NOTHING
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}"


def percent(value: float | None) -> str:
    """Returns a share in percent."""
    return NOTHING if value is None else f"{100 * value:.0f} %"


def signed(value: float | None, digits: int = 2) -> str:
    """Returns a number with its sign."""
    if value is None:
        return NOTHING
    rounded = round(value, digits) or 0.0  # which may be a negative zero
    return f"{rounded:+.{digits}f}".replace("-", MINUS) if rounded else f"{0:.{digits}f}"


def plain(value: float) -> str:
    """Returns a count with one digit after the point; a whole number without."""
    return f"{value:,.1f}".removesuffix(".0")


def times(value: float) -> str:
    """Returns a count of events in words, rounded to a tenth."""
    words = {0.0: "hardly ever" if value else "never", 1.0: "once", 2.0: "twice"}
    return words.get(round(value, 1)) or f"{plain(value)} times"


def measured(value: float | None) -> str:
    """Returns a number with about three significant digits."""
    if value is None:
        return NOTHING
    large = 100
    return f"{value:,.0f}" if abs(value) >= large else f"{value:.3f}".rstrip("0").rstrip(".").replace("-", MINUS)


def typed(value: float | None) -> str:
    """Returns a number as the value of a form field; empty for None."""
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def pretty(value: object) -> Markup:
    """Returns indented JSON, or a text unchanged; cut if very long."""
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False, default=str)
    cut = text[:MOST_JSON_CHARS] + (" … (cut; an export has all of it)" if len(text) > MOST_JSON_CHARS else "")
    return escape(visible(cut))


def call(trace: Mapping[str, Any]) -> str:
    """Returns a tool call in one line: ``name(arg=value)``, with long values shortened."""
    return _line(trace.get("tool", "a call"), trace.get("input"))


def chat_call(given: object) -> str:
    """Returns a call in a chat message as ``call`` does; its arguments are JSON in a text, as models write them."""
    function = given.get("function") if isinstance(given, dict) else None
    if not isinstance(function, dict):
        return _short(given)
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        with suppress(ValueError, RecursionError):
            arguments = json.loads(arguments)
    return _line(function.get("name", "a call"), arguments)


def _line(name: object, given: object) -> str:
    if given is None or given == {}:
        return f"{name}()"
    if not isinstance(given, dict):
        return f"{name}({_short(given)})"
    shown = [f"{argument}={_short(value)}" for argument, value in list(given.items())[:MOST_ARGUMENTS]]
    return f"{name}({', '.join(shown)}{', …' if len(given) > MOST_ARGUMENTS else ''})"


def _short(value: object) -> str:
    return shortened(json.dumps(value, ensure_ascii=False, default=str), MOST_VALUE_CHARS)


def label(value: str) -> str:
    """Returns the console's text for a word of the API; the word itself if there is none."""
    return words.LABELS.get(value, value.replace("_", " "))


def static(name: str) -> bytes:
    """Returns the content of a static file."""
    return files("app.console").joinpath("static", name).read_bytes()


@cache
def static_version(name: str) -> str:
    """Returns a digest of the file for its address, so that browsers may cache it."""
    return hashlib.sha256(static(name)).hexdigest()[:12]


FILTERS: Sequence[Callable[..., object]] = (
    *(when, ago, days, number, percent, signed, plain, times, measured, typed),
    *(form_value, with_commas, on_one_line, pretty, label, call, chat_call),
)
"""Filters of the templates, each under the function's name."""


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("app.console"),
        auto_reload=False,  # pages keep the version of the process during an upgrade
        autoescape=True,
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {each.__name__: each for each in FILTERS}
    made.globals |= {"static_version": static_version, "words": words, "charts": charts}
    return made


def compile_templates() -> None:
    """Compiles every template at the start: no visitor waits, and all pages have the same version."""
    environment = _environment()
    for name in environment.list_templates(extensions=("html",)):
        environment.get_template(name)


def rendered(template: str, *, at: str, looking: Any = None, **more: Any) -> str:
    """Renders a template; ``at`` is the path of the page, for the menu, and ``more`` are the template's variables."""
    agent = looking.agent if looking is not None else None
    here = "" if agent is None else f"agent={quote(agent, safe='')}"
    return _environment().get_template(template).render(at=at, looking=looking, here=here, **more)
