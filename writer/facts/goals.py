"""Patterns of goals, with their metrics, amounts and units."""

import re
from collections.abc import Mapping

from writer.facts.forms import SOON, START, WE_ARE

WISHED = (
    r"weigh\b|learn (?!how|more|about|what|if|why|whether)|(?:lose|gain|save|read|run|walk|sleep|swim|cycle|bench|lift|drink|improve|get|hit|reach)\b[^.?!]{0,30}?(?<![\w.])\d+"
    r" ?(?:kg|kilos?|lbs?|pounds|km|k|miles|books|pages|hours|steps|%|[€$£]|eur\w*|dollars|liters|litres|minutes)\b"
    r"|save [$€£]\d|improve my \w+ to \d"
)
"""Pattern of what follows "I'd like to" in a goal; other wishes are requests."""
GOAL = re.compile(
    rf"{START}(?:(?i:(?:this|next) (?:year|month|summer|winter|spring|fall|autumn|semester)|in (?:19|20)\d\d),? )?(?:(?P<named>(?:[Mm]y|[Oo]ur) (?P<about>(?:[\w'-]+ ){{0,3}}?)(?:goal|aim|target|dream|objective|resolution)(?: (?P<of>weight|body weight))?"
    r"(?: (?:for [\w ]{3,20}|this (?:year|month|week|summer)|right now))?(?:'s| is)(?: currently)?(?: to)? )"
    rf"|[Mm]y (?:main |big |next |new )?plan is to |(?:I|[Ww]e){SOON} (?:(?:want|plan|intend|hope|aim) to |aim for (?=\d))|I'd (?:like|love) to (?={WISHED})|I need to (?=(?:save|lose|pay off) \W?\d)|I have an? (?:new )?(?:goal|target) (?:of (?=\D{{0,3}}\d)|to )|I(?:'ve| have)? set (?:myself )?(?:an? |the )?(?:new )?(?:goal|target) (?:of|to) "
    rf"|(?:I|[Ww]e)(?:'ve| have) (?:been (?:wanting|hoping|meaning|planning)|decided|always wanted) to "
    rf"|{WE_ARE[len(START) :]}{SOON} (?:(?:trying|planning|aiming|hoping|looking|determined|saving(?: up)?|training|working hard) to"
    r"|(?:training|saving(?: up)?|aiming|working) (?:for|on|towards?)|saving(?: up)?(?= (?:[$€£]\d|\d[\d.,]*(?:k\b| ?(?:[€$£]|eur|dollars|usd))))) )(?P<what>.{2,160})$",
)
THIS_TIME = re.compile(
    r"\bthis (?:year|month|week(?:end)?|summer|winter|spring|fall|autumn|season|quarter|semester)\b", re.IGNORECASE
)
PLAIN_GOAL = re.compile(
    r"\b(?:main|big|biggest|next|new|ultimate|long[- ]term|short[- ]term|current|personal|first|only|real|own|other|fitness)\b",
    re.IGNORECASE,
)
"""Words before "goal" that name no metric, such as "main"."""
NO_GOAL = re.compile(  # nor is a request that whoever reads it carries out at once, as a shop's agent does
    r"^(?:thank|say|know|see|ask|hear|tell|talk|show|share|let|apologi|make sure|be\b(?! (?:an?\b|able to (?:do|run|lift|bench|swim|walk|speak|play|cycle|hold)\b))|do\b|go\b(?! to\b)|try\b|get\b(?! (?:fit|stronger|healthier|faster|better at|rid of|promoted|married|an?|my|into|under|below|down to|up to|back (?:in|to|under))\b)"
    r"|have\b|keep\b|give\b|take\b|check\b|stay\b(?! (?:under|below|within))|think|remember|mention|add|point|congrat|help you|feel|stop\b(?! [a-z]+ing\b)|find out|figure out|look"
    r"|(?:just |only )?(?:cancel|exchange|swap|refund|dispute|proceed|confirm|(?:double|triple)-check|return(?! to\b))\b"
    r"|(?:just |only )?(?:adjust|book|change|edit|make|modify|move|pay|place|remove|replace|set|split|switch|track|update|upgrade|use)\b"
    r"(?=.*\b(?:orders?|items?|products?|address(?:es)?|deliver(?:y|ies)|shipping|payments?|refunds?|returns?|exchanges?|reservations?|bookings?|flights?"
    r"|seats?|cabin|bags?|baggage|passengers?|cards?|mastercard|visa|gift card|colou?r|size|material|model|version|both|\d{6,})\b))",
    re.IGNORECASE,
)
METRIC_FILLER = re.compile(
    r"^(?:(?:of|sub|under|below|over|above|at|about|around|to|in|on|for|get|be|able|reach|hit|weigh|stay|go|down|up|cut|have|drop|keep|by|my|back|within|the|a|an|do|walk|only|just)\b\s*)+|\s+(?:of|to|for|at|in|on|by|under|below|from|a|an|the|my|in my|on my)$",
    re.IGNORECASE,
)
METRIC_OF_UNIT: Mapping[str, str] = {
    "kg": "weight",
    "lb": "weight",
    "kcal": "calories",
    "EUR": "money",
    "USD": "money",
    "GBP": "money",
}
"""Metric of a goal that names only a unit, by the unit."""
AMOUNT = re.compile(
    r"(?<![A-Za-z\d])(?P<pre>[$€£])?(?P<value>\d[\d.,]*\d|\d)(?P<k>k\b)?\s*(?P<unit>%|[$€£]|°[CF]|percent|(?:kilos?|kgs?|lbs?|pounds|kilograms?|grams?|g|km|kms|miles?|meters?"
    r"|metres?|k|eur|euros?|usd|dollars?|gbp|chf|hours?|hrs?|minutes?|mins?|days?|weeks?|months?|years?|pages?|books?|steps?|calories|kcal"
    r"|times|cals|liters?|litres?|points?|words?|items?|people|customers?|users?|tickets?|sales|reps?|workouts?)\b)?",
    re.IGNORECASE,
)
_BOUND = re.compile(r"\b(?:under|below|over|above|sub|less than|more than|to)[ -]\W?$")
_DOTTED_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:\.\d{3})+")
_COUNTED = {"EUR", "USD", "GBP", "chf", "steps", "calories", "words", "pages"}
"""Units of amounts with a dot before thousands; of 1.500 kg, the dot may stand before a fraction."""
UNITS: Mapping[str, tuple[str, ...]] = {
    "EUR": ("€", "eur", "euro", "euros"),
    "USD": ("$", "usd", "dollar", "dollars"),
    "GBP": ("£", "gbp"),
    "%": ("%", "percent"),
    "kg": ("kg", "kgs", "kilo", "kilos", "kilogram", "kilograms"),
    "lb": ("lb", "lbs", "pound", "pounds"),
    "calories": ("calories", "cals", "kcal"),
    "km": ("km", "kms", "k"),
    "hours": ("hour", "hours", "hr", "hrs"),
    "minutes": ("minute", "minutes", "min", "mins"),
}


def amount_of(amount: re.Match[str]) -> tuple[str, str]:
    """Returns the value and the unit of a match of AMOUNT; the unit is empty if the amount has none."""
    unit = unit_of(amount["unit"] or amount["pre"] or "")
    value = re.sub(r",(?=\d{3})", "", amount["value"])
    if unit in _COUNTED and _DOTTED_THOUSANDS.fullmatch(value):  # 30.000 euros, as in most of Europe
        value = value.replace(".", "")
    return value + ("000" if amount["k"] else ""), unit


def target_of(what: str) -> re.Match[str] | None:
    """Returns the amount that a goal is to reach: the one behind a word such as "under", else the first."""
    amounts = list(AMOUNT.finditer(what))
    return next((each for each in amounts if _BOUND.search(what, 0, each.start())), amounts[0] if amounts else None)


def unit_of(word: str) -> str:
    """Returns the standard form of a unit, so that 500 € and 500 euros are the same goal; of other words, the word."""
    return next((unit for unit, words in UNITS.items() if word.lower() in words), word.lower())


def words_of_metric(what: str, target: re.Match[str] | None = None) -> str:
    """Returns the metric that a goal names: its words without the amount, up to a comma or a conjunction."""
    begin, rest = ("", what) if target is None else (what[: target.start()], what[target.start() :])
    words = re.sub(r"\0(?: of\b)?", " ", begin + AMOUNT.sub("\0", rest))
    head = re.split(
        r"[,.;!]| (?:(?:by|so|and|because|before|until|this|next|every|per|instead|rather than|daily|weekly|monthly|yearly|in total)\b|a (?=day|week|month|year)) ?",
        words,
        maxsplit=1,
    )[0]
    return " ".join(head.lower().split())[:80]


def metric_of(what: str, about: str, unit: str, target: re.Match[str]) -> str:
    """Returns the metric of a goal with an amount: from its own words, else the words before "goal", else the unit.

    Args:
        what: words of the goal, with the amount.
        about: words before "goal": "weight" in "my weight goal".
        unit: unit of the amount.
        target: the amount.
    """
    own = METRIC_FILLER.sub("", METRIC_FILLER.sub("", words_of_metric(what, target)))
    return own or PLAIN_GOAL.sub("", about).strip().lower() or METRIC_OF_UNIT.get(unit, unit) or "amount"
