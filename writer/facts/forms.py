"""Patterns of sentences that state a fact about the user; their group ``value`` is the value of the fact.

The patterns match the first person only, from the beginning of a sentence up to a conjunction.
"""

import re
from collections.abc import Iterable, Mapping

CAPITAL, SMALL = r"[^\W\d_a-zß-öø-ÿ]", r"[^\W\d_A-Z]"
"""Patterns of the first letter of a name (a capital, or a letter of a script without capitals) and of a later one."""
_DOTTED = r"[\w'\u2024-]"
NAME = rf"{CAPITAL}{_DOTTED}+(?: (?:(?:de|da|do|del|la|of|am|sur|el) )?(?:{CAPITAL}|\d){_DOTTED}*){{0,3}}"
LEAD = r"(?:no|nope|ok|okay|um|uh|hmm|anyway|alright|actually|sorry|correction|wait|well|so|and|but|yes|yeah|yep|hi|hey|hiya|hello|oh|btw|plus|wow|guess what|by the way|on another note|in other news|unfortunately|luckily|thankfully|lately|recently|honestly|personally|in the meantime|these days|nowadays|at the moment|right now|speaking of which|as for me|for me|since we (?:last )?(?:spoke|talked|chatted|met)(?: last)?|also|nice|cool|great|awesome|thanks|sure|seriously|some exciting news)"
START = rf"^(?:(?i:{LEAD})\b(?: {CAPITAL}{SMALL}+)?[,.!:;]*\s+){{0,2}}"
I_AM = rf"{START}I(?:'m| am)"
WE_ARE = rf"{START}(?:I(?:'m| am)|[Ww]e(?:'re| are))"
SOON = r"(?: (?:also|really|just|actually|currently|now|still|always|finally|usually|recently|absolutely|totally|simply|truly|definitely|particularly|especially))?"
_KIN = (
    r"wife|husband|partner|girlfriend|boyfriend|fianc[eé]e?|son|daughter|brother|sister|mother|mom|mum|father|dad|boss|manager"
    r"|dog|cat|puppy|kitten|horse|parrot|friend|best friend|roommate|neighbou?r|cousin|aunt|uncle|grandma|grandpa"
)
PARTNERS = ("wife", "husband", "girlfriend", "boyfriend", "partner", "fiancé", "fiancée", "fiance", "fiancee")
ONE_OF = {*PARTNERS, "boss", "mother", "mom", "mum", "father", "dad"}
PLACE = rf"(?:the )?{NAME}(?:, {NAME})?"
_ROUGHLY = r"(?:(?:now|down|up|about|around|roughly|approximately|approx|max|at most|just|only|under|over|to|~) ?)*"
MEASURE = re.compile(
    rf"{START}(?:[Mm]y (?:max(?:imum)? |total |monthly |weekly |current |(?!goal\b|target\b)[\w-]+ (?=budget))?(?P<what>budget|height|weight|salary|income|shoe size|rent)(?:'s| is| (?:has gone|went|is going|has come|came) (?:up|down) to| (?:rose|dropped|fell|increased|shrank|changed) to) {_ROUGHLY}|I(?:{SOON}|'m) (?P<weigh>weigh|(?:down|up) to(?=\W+\d[\d.,]* ?(?:kg|kilos?|lbs?|pounds)\b)) {_ROUGHLY}|I{SOON} (?P<earn>earn|make) {_ROUGHLY}(?=\W?\d[\d.,]*k? ?(?:[$€£]|eur\w*|usd|dollars|gbp)?(?: [ap]| per\b|$|[.!]))|(?:I|[Ww]e)(?:{SOON} have|'ve got) an? budget of {_ROUGHLY}|(?:I|[Ww]e) can (?:only )?spend {_ROUGHLY}(?=[$€£]|\d[\d.,]*k? ?(?:eur\w*|usd|dollars|gbp|[$€£])))(?P<value>(?=\W?\d)[^;!]{{1,30}}?)(?=$|[.;!](?:\s|$)|,\s| (?:and|but|per|a|for|so)\b)"
)
HAS = re.compile(
    rf"{START}(?:I|[Ww]e)(?:{SOON} have|(?:'ve| have){SOON} got|'ve) (?P<value>(?:an?|two|three|four|five|\d+) (?:[\w-]+ ){{0,3}}"
    r"(?:dogs?|cats?|pupp(?:y|ies|ers?|s)|pups?|kittens?|kids?|child(?:ren)?|sons?|daughters?|brothers?|sisters?|siblings?|turtles?|snakes?|retrievers?|labradors?|poodles?|terriers?|shepherds?|husky|huskies|beagles?|hamsters?|rabbits?|bab(?:y|ies)(?= (?:boy|girl|and|named)\b|$|[.,!])|twins|grandchild(?:ren)?|horses?|fish"
    r"|parrots?|guitars?|pianos?|bikes?|cars?|motorcycles?|degrees?|jobs?|gardens?|collections?|allerg(?:y|ies)|tattoos?|stores?|studios?|compan(?:y|ies)))\b"
)
BEEN = re.compile(rf"{START}I(?:'ve| have) (?:been to|visited|travell?ed to|lived in) (?P<value>{PLACE})")
KIN_NAMED = re.compile(
    rf"\b[Mm]y (?:new |current )?(?P<who>{_KIN})(?:'s name is| is called| is named|,| named| called)? (?P<value>{CAPITAL}[\w-]+)\b(?!'s)"
)
FAVOURITE = re.compile(
    rf"{START}[Mm]y (?:(?:all[- ]time|new|current|absolute|number one) )?favou?rite (?P<what>[\w -]{{2,30}}?) (?:is|are|has to be|(?:has )?changed to|became)(?: now)? (?P<value>[\w ',&:-]{{2,60}}?)(?=$|[.!;]|,? (?:he|she|it|they|I|because|now\b|these days\b|hands down|and (?:I|it|he|she))\b)"
)
LIKES = re.compile(
    rf"{START}(?:I|[Ww]e)(?:(?:'ve| have) always (?P<since>loved|enjoyed|liked|hated)|{SOON}{SOON} (?P<how>love|like|enjoy|adore|hate|dislike|prefer)(?: to)?) (?P<value>[\w '&-]{{3,120}}?)"
    r"(?=$|[.,!;]|,? (?:over|rather than|instead of|than|now|but|so|because|since|as|it|which|that|they|especially|'cause|and (?:I|it|we|they|the|that|my))\b)",
)
_AFTER_TASTE = (
    r"(?=$|[.,!;]|,? (?:but|so|because|since|as|it|which|that|especially|any ?more|and (?:I|it|we|they|the|that|my))\b)"
)
DISLIKES = re.compile(
    rf"{START}(?:I(?: really| just)? (?:(?:do not|don't)(?: really| much)? (?:like|enjoy|love|care for)|can't stand|cannot stand|can't bear)(?: to)?"
    rf"|I'm not (?:(?:really|much of) )?(?:a (?:big |huge )?fan of|into|fond of)) (?P<value>[\w '&-]{{3,80}}?){_AFTER_TASTE}"
)
DOES_NOT = re.compile(
    rf"{START}I(?: really)? (?:do not|don't|never|can't|cannot|no longer) (?P<how>eat|drink|smoke|drive|speak|have(?= (?:dairy|gluten|nuts|sugar|alcohol|caffeine|lactose|meat)\b))(?P<value>(?: [\w'-]+){{0,4}}?)"
    r"(?=$|[.,!;]| (?:any ?more|any longer|but|so|because|and|since)\b)"
)
STOPPED = re.compile(
    rf"{START}I(?:'ve| have)?(?: just| recently| finally)? (?:stopped|quit|gave up|given up) (?P<value>(?:smoking|drinking|vaping|eating|gambling)(?: (?!last|this|two|a )[\w'-]+){{0,3}}?|running|dating|training|biking)"
    r"(?=$|[.,!;]| (?:last|this|two|a|in|because|and|since|for)\b)"
)
_KIN_FORMS = {
    "home": rf"lives? in (?P<value>{PLACE})",
    "employer": rf"works (?:at|for) (?P<value>{NAME})",
    "age": r"(?:is|are)(?: an?)? (?P<value>\d{1,2}(?:(?:, ?| and |, and )\d{1,2})*(?= |$|[.,!]))(?: years old)?",
    "is": r"(?:is|are)(?: an?)? (?P<value>vegan|vegetarian|pregnant|retired|allergic to [\w ]{3,30}?)",
}
_OF_KIN = rf"{START}[Mm]y (?P<who>{_KIN}|kids|children)(?: {CAPITAL}{SMALL}+)? "
KIN_DOES = {
    attribute: re.compile(rf"{_OF_KIN}{form}(?=$|[.,;!]| (?:and|but|now|with|so)\b)")
    for attribute, form in _KIN_FORMS.items()
}
"""Patterns of sentences about a person or pet of the user, by the attribute that they state."""
THEIRS = re.compile(
    rf"{START}[Mm]y (?P<who>(?:(?:two|three|younger|older|little) )?(?:{_KIN}|kids?|children|family|fam|wife|parents|team)(?: {CAPITAL}{SMALL}+)?)"
    r"(?: (?:also|really|just|absolutely))? (?P<how>loves?|likes?|enjoys?|adores?|hates?)(?: to)? (?P<value>[\w '&-]{3,80}?)"
    r"(?=$|[.,!;]|,? (?:but|so|because|since|as|it|which|that|they|especially|and (?:I|it|we|they|the|that|my))\b)",
)
HABIT = re.compile(
    rf"{START}I (?P<often>usually|often|always|regularly|sometimes|mostly|mainly) (?P<value>(?!(?:have|appreciate|feel|felt|think|thought|remember|know|knew|get|got|find|found"
    r"|wonder|believe|love|like|enjoy|said|try|tried|want|wanted)\b)[a-z]+ [\w ':&-]{3,80}?)"
    r"(?=$|[.,!;]|,? (?:but|so|because|since|as|which|and (?:I|it|we|they|the|that|my))\b)",
)
_EVERY = (
    r"(?:every (?:(?:other|single) )?(?:day|morning|evening|afternoon|night|week(?:end)?|month|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)s?|daily|(?:once|twice|(?:one|two|three|four|five|six|\d)(?: times| x|x)) (?:a|per|every) (?:day|week|month|year)"
    r"|(?:on )?(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days|weekends|weekdays))"
)
ROUTINE = re.compile(
    rf"{START}(?:I|[Ww]e){SOON} (?P<value>(?:go|run|work|swim|cycle|bike|train|exercise|meditate|walk|jog|practi[sc]e|play|read|study|volunteer|commute|cook|lift|do|drink|eat|take)(?: (?:to|from|out|for|at|the|in|my|[\w'-]+)){{0,6}}? {_EVERY})(?=$|[.,!;]|,? (?:but|so|because|since|and|at|in|with)\b)"
)
"""Pattern of sentences about something that the user does regularly."""
HOW_OFTEN = re.compile(
    r" (?:every (?:(?:other|single) )?(?:day|week|month)|daily|(?:once|twice|\w+(?: times| x|x)) (?:a|per|every) (?:day|week|month|year))$"
)
"""Frequency at the end of a routine, of which one holds at a time; a weekday or a time of day may stand beside another."""
TAKES = re.compile(
    rf"{START}I(?:{SOON} take|'m{SOON} (?:taking|on)) (?P<value>[a-z][\w-]{{3,}}(?: [\w-]+)?) for my (?P<for>[\w -]{{3,30}}?)(?=$|[.,!;]| (?:and|but)\b)"
)
"""Pattern of sentences about a medicine that the user takes, with its purpose."""
FAVOURITE_LAST = re.compile(
    rf"{START}(?P<value>{CAPITAL}[\w '&-]{{2,60}}?) (?:is|are) (?:definitely |probably |one of )?my (?:all[- ]time )?(?:favou?rite(?P<what> [\w -]{{2,30}}?)?s?|go-to(?: [\w -]{{2,30}}?)?|passion|hobby|jam)(?=$|[.,!;]| (?:and|but|because|since|too)\b)"
)
FAN = re.compile(
    rf"{I_AM}{SOON} an? (?:(?:big|huge|massive|lifelong|die-?hard|avid) )?(?P<value>{CAPITAL}[\w'&-]*(?: (?:{CAPITAL}|\d)[\w'&-]*){{0,3}}) fan\b"
)
FOND = re.compile(
    rf"{START}I(?:(?:'m| am){SOON}|(?:'ve| have) always been)(?: (?:so|very|super|big|really|pretty))? "
    r"(?:passionate about|all about|into|interested in|fond of|(?:a )?(?:big |huge |massive )?fan of|obsessed with) (?P<value>[\w '&-]{3,80}?)"
    r"(?=$|[.,!;]|,? (?:but|so|because|since|as|it|which|that|they|and (?:I|it|we|they|the|that|my))\b)",
)
VAGUE = re.compile(
    r"^(?:it|this|that|these|those|them|they|him|her|you|your|yours|its|their|his|how|what|when|where|why|who|which|the|just|all|some|one|ones|any|every\w*|both|each|such|more|most|everything|something|help$|great|good|well|okay|fine|busy|as|for|farther|pretty"
    r"|anything|hearing|seeing|see|hear|know|knowing|think|say|a lot|being|be|getting|having|have|sharing|to|ever|a ton)\b",
    re.IGNORECASE,
)
CUT = re.compile(r"\b(?:to|for|with|of|in|on|at|about|from|and|making|a|an|the)$", re.IGNORECASE)
POINTS = re.compile(
    r"\b(?:it|this|that|these|those|them|you|your|yours|there|here|together|so|too|again|one)\b", re.IGNORECASE
)
CLAUSE = re.compile(r"[,;] (?:but |and |so )?(?=(?:last|this|yesterday|just|I|we|the other|in)\b)| but ")
POINTS_FIRST = re.compile(
    r"^(?:it|this|that|these|those|them|him|her|you|one|some|something|so|there|(?:back to|with) (?:it|that)|to (?:\w+ )?(?:it|that|this|them)|a (?:great|good|nice) time$)\b",
    re.IGNORECASE,
)
THERE = re.compile(r"\b(?:there|here|that pic\w*|this pic\w*|that photo|this photo)\b", re.IGNORECASE)
ALL = re.compile(r"\b(?:everything|something|anything)\b", re.IGNORECASE)
_TIME = r"(?:(?:just )?(?:yesterday|today|tonight|this morning|tomorrow|(?:last|next|this|this past) [A-Za-z]+|the other day|(?:in|during) [A-Z][a-z]+|on [A-Z][a-z]+day|(?:a few|several) [a-z]+ ago|earlier today|(?:two|three|a few|\d+) [a-z]+ ago)),?"
_WE = r"(?:I|[Ww]e|[Mm]y [\w' ]{2,30} and I)"
EVENT = re.compile(
    rf"{START}(?:(?i:{_TIME}) )?{_WE}(?: (?:also|really|just|actually|finally|even|first|recently))?"
    r" (?P<verb>went|bought|got|took|made|had(?! to\b)|met|ran|won|lost|began|broke|sold|saw|flew|drove|built|held|gave|found|spent|wrote|did"
    r"|caught|came|did|ate|drank|slept|rode|swam|taught|told|left|(?!(?:want|need|lov|lik|hop|us|seem|decid|plan|enjoy|hat|mention|notic|realiz"
    r"|miss|wonder|bas|reali[sz]|believ|learn|wish|prefer)(?:n?ed|d)\b)[a-z]{2,12}ed) (?P<what>.+)$",
)
LATELY = re.compile(
    rf"{START}(?:I|[Ww]e)(?:'ve| have)? (?:also )?(?:just|recently|finally) (?P<verb>went|bought|got(?! to\b)|took|made|had(?! to\b)|met|ran|won|lost|began|sold|built"
    r"|found|wrote|came back|read|did|spent|set up|sent|gave|held|saw|flew|drove|(?!(?:want|need|lov|lik|hop|us|seem|decid|plan|enjoy"
    r"|hat|mention|notic|realiz|realis|miss|wonder|bas|believ|learn|wish|prefer|look)(?:n?ed|d)\b)[a-z]{2,12}ed) (?P<what>.+)$",
)
AHEAD = re.compile(
    rf"{START}(?:(?i:{_TIME}) )?(?:I(?:'m| am)|[Ww]e(?:'re| are)){SOON}"
    r" (?P<verb>going|hosting|having|putting on|putting together|off to|taking|flying|moving|starting|attending|visiting|meeting"
    r"|organi[sz]ing|leaving|running|throwing|joining|performing) (?P<what>.+)$",
)
ONGOING = re.compile(
    rf"{START}I(?:'ve| have) (?:also |just |really )?been (?:(?P<verb>\w+ing)(?P<long>(?: [\w'&-]+){{1,8}}?) (?:for (?:over |about |almost )?(?:\w+ )(?:years|months)|since (?:19|20)\d\d)\b"
    r"|(?P<now>taking|learning|reading|writing|working on|studying|practicing|practising|training|volunteering|playing|painting|running|teaching"
    r"|collecting|making|attending|going to) (?P<value>[\w '&-]{3,60}?)"
    r"(?=$|[.,!;]|,? (?:but|so|because|since|as|it|which|that|to|lately|recently|and (?:I|it|we|they|the|that|my))\b))"
)
DOES = re.compile(
    rf"{START}I(?:{SOON} (?P<now>play|speak|own|drive|study|teach|collect|volunteer at|volunteer for|commute by|root for|support(?= {CAPITAL}[\w-]*(?: {CAPITAL}[\w-]*)*(?:$|[.,;!]))|run(?= an? (?:[\w-]+ ){{0,2}}(?:bakery|business|shop|store|company|agency|blog|farm|studio|restaurant|caf[eé]|podcast|channel|startup|clinic|practice)\b))|(?:'m| am){SOON} (?P<ing>doing(?= an? (?:phd|PhD|master|bachelor|degree|course|MBA|internship|apprenticeship)\b)|learning|studying|taking|reading|writing|volunteering at|training for|organi[sz]ing|hosting))"
    r" (?P<value>[\w '&-]{3,60}?)(?=$|[.,!;]|,? (?:but|so|because|since|as|it|which|that|now|these days|lately|and (?:I|it|we|they|the|that|my))\b)",
)
_CATEGORIES: Mapping[str, str] = {
    "money": r"sav(?:e|ing)|spend|budget|debt|loan|mortgage|invest\w*|salary|income|pay off|[$€£]|eur|usd|dollars?|pounds? a month",
    "health": r"weight|kg|lbs|run(?:ning)?|ran [\d.,]+ ?(?:km?|miles?)|marathon|gym|workouts?|sleep|slept|diet|exercise|fit|yoga|steps|smok\w+|health\w*|allerg\w+|vegan|vegetarian|calories|meditat\w+",
    "learning": r"learn\w*|stud(?:y|ying)|course|degree|exam|language|read\w*|books?|school|college|university|class|certif\w+",
    "work": r"job|work\w*|career|business|company|client|project|promot\w+|startup|sales|store|office|boss|manager|hire|employer|role",
    "home": r"house|home|apartment|garden|kitchen|move|rent|renovat\w+|furniture",
    "travel": r"travel\w*|trip|visit\w*|vacation|flight|flew|hotel|hik\w+|camp\w*|beach|abroad",
    "people": r"wife|husband|son|daughter|kids?|family|friends?|mom|mum|dad|parents?|partner|dog|cat|puppy|kitten|adopt\w*|wedding|birthday",
}
CATEGORY = {name: re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.IGNORECASE) for name, words in _CATEGORIES.items()}
_GROUP = re.compile(r"\(\?P<\w+>")


def any_of(forms: Iterable[re.Pattern[str]]) -> re.Pattern[str]:
    """Returns a pattern that matches where one of the forms does, in a fifth of their time; each form begins with "^".

    The pattern matches START once for all of them.
    """
    led, others = list[str](), list[str]()
    for form in forms:
        pattern = _GROUP.sub("(?:", form.pattern)
        if pattern.startswith(START):
            led.append(pattern.removeprefix(START))
        else:
            flag = "i" if form.flags & re.IGNORECASE else ""
            others.append(f"(?{flag}:{pattern.removeprefix('(?i)')})")
    return re.compile("|".join([f"{START}(?:{'|'.join(led)})", *others]))


STATED = (
    *(
        MEASURE,
        HAS,
        BEEN,
        FAVOURITE,
        LIKES,
        *KIN_DOES.values(),
        THEIRS,
        HABIT,
        ROUTINE,
        TAKES,
        FAVOURITE_LAST,
        FAN,
        FOND,
    ),
    *(ONGOING, DOES),
)
"""Patterns of what the user does, has and likes, and of the user's people, that begin with START."""
HAPPENS = any_of((EVENT, LATELY, AHEAD))
"""Pattern of all sentences about an event."""
