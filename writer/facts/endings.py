"""Sentences that end a fact: each becomes the positive sentences that would have stated the fact."""

import re
from functools import cache

from retrieval.patterns import compiled, read
from writer.facts.forms import FORMS, PACKAGE, replaced


def positives(plain: str, *, denied: bool) -> list[str]:
    """Returns the positive sentences that a sentence takes back: "I quit Acme" takes back "I work at Acme"."""
    forms = _ended() if FORMS["ends"].search(plain) else ()
    found = [match.expand(each) for form, to in forms if (match := form.search(plain)) for each in to]
    if denied and not found and (FORMS["former"].search(plain) or not FORMS["limited"].search(plain)):
        positive = replaced(plain, "undenied")
        found = [positive] if positive != plain else []
    found += [each.replace("I play ", "I play the ", 1) for each in found if "I play " in each]
    return [*found, *(f"{each.rstrip(' .!')} every day" for each in found)]  # a routine, however often


@cache
def _ended() -> list[tuple[re.Pattern[str], list[str]]]:
    return [(compiled(PACKAGE, form), positives) for form, *positives in read(PACKAGE)["ended"]["by"]]
