"""Patterns of sentences that end a fact: each becomes the positive sentence that would have stated the fact."""

import re

from writer.facts.forms import CAPITAL, LEAD, SMALL, START

ENDINGS: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = tuple(
    (re.compile(rf"^(?:(?i:{LEAD})\b[,.!:;]*\s+)?{pattern}"), positives)
    for pattern, positives in (
        (
            r"(?P<who>I|[Ww]e) (?:just |recently |finally )?(?:stopped|quit|'ve stopped|have stopped|gave up|'ve given up|'ve quit) (?P<verb>[a-z]+?)(?P<double>[bdgmnprt]?)(?P=double)?ing(?P<rest>.*)$",
            (r"I \g<verb>\g<double>\g<rest>", r"I \g<verb>\g<double>e\g<rest>", r"I'm \g<verb>\g<double>ing\g<rest>"),
        ),
        (
            r"I(?:'ve)? (?:just |recently |finally )?gave up on (?P<verb>[a-z]+?)(?P<double>[bdgmnprt]?)(?P=double)ing(?P<rest> .*)$",
            (r"I want to \g<verb>\g<double>\g<rest>", r"I want to \g<verb>\g<double>e\g<rest>"),
        ),
        (
            r"(?:I|[Ww]e)(?:'ve)? (?:just |recently |finally )?(?:left|quit|resigned from|got (?:fired|laid off) (?:from|by)|was (?:fired|laid off) (?:from|by)|retired from|moved (?:away from|out of)) (?:my (?:job|role|position) (?:at|with) )?(?P<rest>(?:the )?[\w&.'\u2024-]+(?: [A-Z\d][\w&.'\u2024-]*)*).*$",
            (r"I work at \g<rest>", r"I live in \g<rest>"),
        ),
        (
            r"(?:I|[Ww]e)(?:'ve)? (?:just |recently |finally )?(?:sold|lost|got rid of|gave away|returned) (?:my|our|the) (?P<rest>.*)$",
            (r"I have a \g<rest>", r"I own a \g<rest>", r"I drive a \g<rest>"),
        ),
        (
            rf"[Mm]y (?P<rest>dog|cat|puppy|kitten|horse|parrot)(?: {CAPITAL}{SMALL}+)? (?:died|passed away|ran away)(?=$|[.,!; ]).*$",
            (r"I have a \g<rest>",),
        ),
    )
)
"""Patterns of sentences that end a fact, each with the positive sentences that would have stated the fact."""
ENDS = re.compile(
    r"stopped|quit|gave|given|left|resigned|got |was |retired|moved|sold|lost|returned|died|passed away|ran away"
)
"""Every sentence that one of ENDINGS or LOST_JOB matches has one of these words."""
LOST_JOB = re.compile(
    rf"{START}I(?:'ve)? (?:just |recently |finally )?(?:left|quit|lost|resigned from) my (?:old )?job(?=$|[.,!;]| (?:last|this|yesterday|today|and|because|in)\b)"
)
UNDENIED: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), by)
    for pattern, by in (
        (r"\s+(?:any ?more|any longer|these days|nowadays|now|after all)\b", ""),
        (r"\b(I|we) (?:really |just )?(?:don't|do not|didn't|did not|never|no longer|used to) (?:really )?", r"\1 "),
        (r"\bused to be\b", "is"),
        (r"\b(is|are)n't\b|\b(is|are) (?:not|no longer)\b", r"\1\2"),
        (r"\b(I'm|we're) (?:not|no longer) (?:really )?", r"\1 "),
        (r"\bnot my\b|\bno longer my\b", "my"),
    )
)
"""Replacements that take the negation out of a sentence."""
FORMER = re.compile(r"\b(?:any ?more|any longer|no longer|used to)\b", re.IGNORECASE)
"""Words that mark a sentence as one about the past, such as "used to"."""


def positives(plain: str, *, denied: bool) -> list[str]:
    """Returns the positive sentences that a sentence takes back: "I quit Acme" takes back "I work at Acme"."""
    forms = ENDINGS if ENDS.search(plain) else ()
    found = [match.expand(each) for form, to in forms if (match := form.search(plain)) for each in to]
    if denied and not found:
        positive = plain
        for form, by in UNDENIED:
            positive = form.sub(by, positive)
        found = [positive] if positive != plain else []
    return found
