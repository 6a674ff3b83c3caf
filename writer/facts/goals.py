"""Patterns of goals, with their metrics, amounts and units."""

import re
from collections.abc import Mapping

from writer.facts.forms import SOON, START, WE_ARE

GOAL = re.compile(
    rf"{START}(?:(?P<named>(?:[Mm]y|[Oo]ur) (?P<about>(?:[\w'-]+ ){{0,3}}?)(?:goal|aim|target|dream|objective|resolution)(?: (?P<of>weight|body weight))?"
    r"(?: (?:for [\w ]{3,20}|this (?:year|month|week|summer)|right now))?(?:'s| is)(?: currently)?(?: to)? )"
    rf"|[Mm]y (?:main |big |next |new )?plan is to |(?:I|[Ww]e){SOON} (?:(?:want|plan|intend|hope|aim) to |aim for (?=\d))|I'd (?:like|love) to (?=weigh\b|lose \d)|I need to (?=(?:save|lose|pay off) \W?\d)|I(?:'ve| have)? set (?:myself )?(?:an? |the )?(?:new )?(?:goal|target) (?:of|to) "
    rf"|(?:I|[Ww]e)(?:'ve| have) (?:been (?:wanting|hoping|meaning|planning)|decided|always wanted) to "
    rf"|{WE_ARE[len(START) :]}{SOON} (?:(?:trying|planning|aiming|hoping|looking|determined|saving(?: up)?|training|working hard) to"
    r"|(?:training|saving(?: up)?|aiming|working) (?:for|on|towards?)) )(?P<what>.{2,160})$",
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
    r"^(?:thank|say|know|see|ask|hear|tell|talk|show|share|let|apologi|make sure|be\b(?! an?\b)|do\b|go\b(?! to\b)|try\b|get\b(?! (?:an?|my|into|under|below|down to|up to|back (?:in|to|under))\b)"
    r"|have\b|keep\b|give\b|take\b|check\b|stay\b(?! (?:under|below|within))|think|remember|mention|add|point|congrat|help you|feel|stop\b(?! [a-z]+ing\b)|find out|figure out|look"
    r"|(?:just |only )?(?:cancel|exchange|swap|refund|dispute|proceed|confirm|(?:double|triple)-check|return(?! to\b))\b"
    r"|(?:just |only )?(?:adjust|book|change|edit|make|modify|move|pay|place|remove|replace|set|split|switch|track|update|upgrade|use)\b"
    r"(?=.*\b(?:orders?|items?|products?|address(?:es)?|deliver(?:y|ies)|shipping|payments?|refunds?|returns?|exchanges?|reservations?|bookings?|flights?"
    r"|seats?|cabin|bags?|baggage|passengers?|cards?|mastercard|visa|gift card|colou?r|size|material|model|version|both|\d{6,})\b))",
    re.IGNORECASE,
)
METRIC_FILLER = re.compile(
    r"^(?:(?:of|sub|under|below|over|above|at|about|around|to|in|on|for|get|be|reach|hit|weigh|stay|go|down|up|cut|have|drop|keep|by|my|back|within|the|a|an|do|walk|only|just)\b\s*)+|\s+(?:of|to|for|at|in|on|by|under|below|from|a|an|the|my|in my|on my)$",
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
    r"(?P<pre>[$€£])?(?P<value>\d[\d.,]*\d|\d)(?P<k>k\b)?\s*(?P<unit>%|°[CF]|percent|(?:kilo|kgs?|lbs?|pounds|kilograms?|grams?|g|km|kms|miles?|meters?"
    r"|metres?|k|eur|euros?|usd|dollars?|gbp|chf|hours?|hrs?|minutes?|mins?|days?|weeks?|months?|years?|pages?|books?|steps?|calories|kcal"
    r"|times|cals|liters?|litres?|points?|words?|items?|people|customers?|users?|tickets?|sales|reps?|workouts?)\b)?",
    re.IGNORECASE,
)
UNITS: Mapping[str, tuple[str, ...]] = {
    "EUR": ("€", "eur", "euro", "euros"),
    "USD": ("$", "usd", "dollar", "dollars"),
    "GBP": ("£", "gbp"),
    "%": ("%", "percent"),
    "kg": ("kg", "kgs", "kilo", "kilogram", "kilograms"),
    "lb": ("lb", "lbs", "pound", "pounds"),
    "calories": ("calories", "cals", "kcal"),
    "km": ("km", "kms", "k"),
    "hours": ("hour", "hours", "hr", "hrs"),
    "minutes": ("minute", "minutes", "min", "mins"),
}


def amount_of(amount: re.Match[str]) -> tuple[str, str]:
    """Returns the value and the unit of a match of AMOUNT; the unit is empty if the amount has none."""
    value = re.sub(r",(?=\d{3})", "", amount["value"]) + ("000" if amount["k"] else "")
    return value, unit_of(amount["unit"] or amount["pre"] or "")


def unit_of(word: str) -> str:
    """Returns the standard form of a unit, so that 500 € and 500 euros are the same goal; of other words, the word."""
    return next((unit for unit, words in UNITS.items() if word.lower() in words), word.lower())


def words_of_metric(what: str) -> str:
    """Returns the metric that a goal names: its words without the amount, up to a comma or a conjunction."""
    words = re.sub(r"\0(?: of\b)?", " ", AMOUNT.sub("\0", what))
    head = re.split(
        r"[,.;!]| (?:(?:by|so|and|because|before|until|this|next|every|per|instead|rather than|daily|weekly|monthly|yearly|in total)\b|a (?=day|week|month|year)) ?",
        words,
        maxsplit=1,
    )[0]
    return " ".join(head.lower().split())[:80]


def metric_of(what: str, about: str, unit: str) -> str:
    """Returns the metric of a goal with an amount: from its own words, else the words before "goal", else the unit.

    Args:
        what: words of the goal, with the amount.
        about: words before "goal": "weight" in "my weight goal".
        unit: unit of the amount.
    """
    own = METRIC_FILLER.sub("", METRIC_FILLER.sub("", words_of_metric(what)))
    return own or PLAIN_GOAL.sub("", about).strip().lower() or METRIC_OF_UNIT.get(unit, unit) or "amount"
