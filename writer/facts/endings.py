"""Patterns of sentences that end a fact: each becomes the positive sentence that would have stated the fact."""

import re

from writer.facts.forms import CAPITAL, LEAD, SMALL, START

_THING = r"(?P<rest>[\w' -]+?)(?:$|[.,!;]| (?:last|yesterday|today|this|because|and|for|to|on|in)\b.*$)"
_OWNED = (r"I have a \g<rest>", r"I own a \g<rest>", r"I drive a \g<rest>")
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
            r"(?:I|[Ww]e)(?:'ve)? (?:just |recently |finally )?(?:left|quit|resigned from|got (?:fired|laid off) (?:from|by)|was (?:fired|laid off) (?:from|by)|retired from|moved (?:away from|out of)) (?:my (?:job|role|position) (?:at|with) )?(?P<rest>(?:the )?[\w&.'\u2024-]+(?: [A-Z\d][\w&.'\u2024-]*)*)(?! (?:this (?:morning|afternoon)|today|tonight|yesterday|early|late|at|by|on the|for (?:work|the|an?)|to)\b).*$",
            (r"I work at \g<rest>", r"I live in \g<rest>"),
        ),
        (
            r"(?:I|[Ww]e)(?:'ve)? (?:just |recently |finally )?(?:stopped|quit|gave up|given up) being (?P<rest>.*)$",
            (r"I'm \g<rest>",),
        ),
        (
            r"I(?:'m|'ve)? (?:just |recently |finally )?(?:off|stopped|quit|gave up(?: on)?|given up(?: on)?|gone off|lost interest in|got(?:ten)? tired of) (?P<rest>(?!(?:my|to|for|on|at)\b)[\w' -]+?)(?:$|[.,!;]| (?:last|this|a|and|because|since|for good)\b.*$)",
            (
                *(r"I'm on a \g<rest> diet", r"I play \g<rest>", r"I'm learning \g<rest>", r"I like \g<rest>"),
                *(r"I want to learn \g<rest>", r"I'm training for \g<rest>"),
            ),
        ),
        (
            r"(?P<rest>[\w' -]{3,40}) (?:isn't|is not|is no longer|aren't|are no longer) (?:really )?my (?:thing|cup of tea)\b.*$",
            (r"I like \g<rest>",),
        ),
        (
            r"I(?:'ve)? (?:just |recently |finally )?(?:switched|changed|migrated|moved|went) from (?:an? )?(?P<rest>[\w -]+?) to .*$",
            (
                r"I use \g<rest>",
                r"I use an \g<rest>",
                r"I use a \g<rest>",
                r"I work at \g<rest>",
                r"I drive a \g<rest>",
            ),
        ),
        (
            r"I (?P<rest>(?:eat|drink|smoke|drive|speak)\b.*?) again\b.*$",
            (r"I don't \g<rest>", r"I never \g<rest>"),
        ),
        (
            r"I(?:'ve)? (?:started|went back to|gone back to|began) (?P<verb>eat|drink|smok|driv)ing(?P<rest>.*?)(?: again\b.*)?$",
            (r"I don't \g<verb>\g<rest>", r"I don't \g<verb>e\g<rest>"),
        ),
        (
            r"I(?:'ve)? (?:eat|started eating|went back to eating|gone back to eating) (?:meat|fish|chicken)\b.*$",
            (r"I'm vegetarian", r"I'm vegan"),
        ),
        (
            r"I(?:'ve)? outgr(?:ew|own) my (?P<rest>[\w ]+?) allergy\b.*$",
            (r"I'm allergic to \g<rest>", r"I'm allergic to \g<rest>s"),
        ),
        (
            rf"(?:I|[Ww]e)(?:'ve)? (?:just |recently |finally )?(?:sold|lost|got rid of|gave away|returned) (?:my|our|the) {_THING}",
            _OWNED,
        ),
        (rf"(?:[Ss]omeone|[Ss]omebody|[Tt]hey) stole my {_THING}", _OWNED),
        (r"[Mm]y (?P<rest>\w+(?: \w+)?) (?:got|was|has been) (?:stolen|totall?ed|scrapped|sold)\b.*$", _OWNED),
        (
            r"(?:I|[Ww]e) (?:had to )?put (?:our|my|the) (?P<rest>dog|cat|puppy|kitten|horse)(?: [A-Z]\w+)? (?:down|to sleep)\b.*$",
            _OWNED,
        ),
        (
            rf"[Mm]y (?P<rest>dog|cat|puppy|kitten|horse|parrot)(?: {CAPITAL}{SMALL}+)? (?:died|passed away|ran away)(?=$|[.,!; ]).*$",
            (r"I have a \g<rest>",),
        ),
    )
)
"""Patterns of sentences that end a fact, each with the positive sentences that would have stated the fact."""
ENDS = re.compile(
    r"stopped|quit|gave|given|left|resigned|got |gotten |was |been |retired|moved|sold|lost|returned|died|passed away|ran away|off |off$"
    r"|stole|put |switched|changed|migrated|went |gone |again|started|began|outgr|my thing|my cup|meat|fish|chicken|fired|laid off|sacked"
    r"|let go|unemployed|between jobs|out of work|broke|split|separated|divorced|dumped|called off|taking|take |no longer|not on"
)
"""Every sentence that a pattern of this module for endings matches has one of these words."""
_ENDED = r"(?=$|[.,!;]| (?:last|this|yesterday|today|and|because|but|so|in|on|now|a|two|few)\b)"
LOST_JOB = re.compile(
    rf"{START}I(?:'ve| have|'m)?(?: just| recently| finally| now)? (?:(?:left|quit|lost|resigned from) (?:my (?:old )?(?:job|company)(?: (?:at|with|as an?) [\w .&-]+?)?|the company)|quit|resigned|retired"
    r"|(?:(?:got|been|was|am) )?(?:(?:laid off|fired|sacked|let go)|made redundant)|(?:now )?unemployed|between jobs|out of work)"
    rf"{_ENDED}|^(?:[Ll]ost|[Qq]uit|[Ll]eft) my job(?: (?:at|with|as an?) [\w .&-]+?)?{_ENDED}"
)
_PARTNER = "girlfriend|boyfriend|partner|wife|husband|fianc[eé]e?"
PARTED = re.compile(
    rf"{START}(?:(?:[Ww]e|(?:[Mm]y (?:{_PARTNER})|{CAPITAL}{SMALL}+) and I)(?:'ve| have|'re| are)?(?: just| recently| finally)? (?:broken? up|split up|separated|divorced|got divorced|called off (?:the|our) (?:engagement|wedding))"
    rf"|I(?:'ve)?(?: just| recently| finally)? (?:got divorced|(?:broke up with|left|divorced|got divorced from) my (?:{_PARTNER}))"
    rf"|[Mm]y (?:{_PARTNER})(?: {CAPITAL}{SMALL}+)? (?:left|dumped|divorced|broke up with) me){_ENDED}"
)
"""Pattern of sentences that end a marriage or another relationship of the user."""
STOPPED_TAKING = re.compile(
    r"\bI(?:'m off|'ve stopped taking| stopped taking| no longer take| don't take|'m no longer (?:on|taking)|'m not (?:on|taking)|'ve come off) (?P<value>[a-z][\w-]{3,}?)"
    r"(?: any ?more| any longer| now)?(?=$|[.,!;]| (?:last|this|since|because|and|for my)\b)"
)
UNDENIED: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), by)
    for pattern, by in (
        (r"\s+(?:any ?more|any longer|these days|nowadays|now|after all)\b", ""),
        (
            r"\b(I|we) (?:really |just )?(?:don't|do not|didn't|did not|never|no longer|used to(?! be\b)) (?:really )?",
            r"\1 ",
        ),
        (r"\bI used to be\b", "I'm"),
        (r"\bused to be\b", "is"),
        (r"\b(is|are)n't\b|\b(is|are) (?:not|no longer)\b", r"\1\2"),
        (r"\b(I'm|we're) (?:not|no longer) (?:really )?", r"\1 "),
        (r"\bnot my\b|\bno longer my\b", "my"),
    )
)
"""Replacements that take the negation out of a sentence."""
_LIMITED = re.compile(
    r"\b(?:on (?:week|Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)\w*|at night|in the (?:morning|evening)s?|today|yesterday|tonight|(?:this|last) (?:morning|week\w*|night)|well|much|often|every|always|strictly|exactly)\b"
    r"|\bnot\b.*\bbut (?:for|at|in|an?|with)\b"
)
"""Words that limit a negation to a day or a degree: "I don't work there on Fridays" takes nothing back."""
FORMER = re.compile(r"\b(?:any ?more|any longer|no longer|used to)\b", re.IGNORECASE)
"""Words that mark a sentence as one about the past, such as "used to"."""


def positives(plain: str, *, denied: bool) -> list[str]:
    """Returns the positive sentences that a sentence takes back: "I quit Acme" takes back "I work at Acme"."""
    forms = ENDINGS if ENDS.search(plain) else ()
    found = [match.expand(each) for form, to in forms if (match := form.search(plain)) for each in to]
    if denied and not found and (FORMER.search(plain) or not _LIMITED.search(plain)):
        positive = plain
        for form, by in UNDENIED:
            positive = form.sub(by, positive)
        found = [positive] if positive != plain else []
    found += [each.replace("I play ", "I play the ", 1) for each in found if "I play " in each]
    return [*found, *(f"{each.rstrip(' .!')} every day" for each in found)]  # a routine, however often
