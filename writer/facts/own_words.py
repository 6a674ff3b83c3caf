"""Selection of a user's own words in a turn; pasted, quoted or dictated text says nothing about the user.

Text counts as pasted if it has a mark (a fence, a tag, the head of a mail, a greeting below the first line, a speaker's
label), if it stands below a request about a text, or above such a request at the end of the turn, and in doubt.
"""

import re

from writer.facts.requests import asks_about_a_text

MOST_READ = 10_000
"""Maximum number of characters of a turn that are read, from its beginning; the rest counts as pasted."""
LONGEST = 300
"""Maximum number of characters of a sentence; a longer sentence is not read."""

_GAP = " … "
"""Text in place of a quotation, so that no sentence is read across the quotation."""
_QUOTES = re.compile(r"['`~\"<>“„«「](?<!\w')")
"""The first character of every match of _BLOCK, a pattern that is slow on a text without one."""
_BLOCK = re.compile(
    r"(?P<fence>```|~~~|\"{3}|'{3}).*?(?:(?P=fence)|\Z)|`[^`\n]*`"
    r"|<(?P<tag>[A-Za-z][\w:-]*)(?:\s[^<>]*)?>.*?</(?P=tag)\s*>|^\s*<[A-Za-z][\w:-]*(?:\s[^<>]*)?>.*\Z"
    r"|“[^”]*”|„[^“”]*[“”]|«[^»]*»|「[^」]*」|^\s*\"[^\"]*\"\s*$|\"[^\"\n]*\"|(?<!\w)'[^'\n]{3,}'(?!\w)|^[ \t]*>[^\n]*$",
    re.DOTALL | re.MULTILINE,
)
_NOUN = (
    r"(?:e-?mails?|mails?|letters?|messages?|texts?|cvs?|r[eé]sum[eé]s?|tickets?|documents?|docs?|interviews?|transcripts?|articles?"
    r"|essays?|paragraphs?|sentences?|stor(?:y|ies)|poems?|reviews?|posts?|tweets?|notes|conversations?|chats?|threads?|reports?"
    r"|bios?|biograph(?:y|ies)|drafts?|passages?|excerpts?|quot(?:es?|ations?)|comments?|complaints?|testimonials?|dialogues?"
    r"|speech(?:es)?|lyrics|applications?|statements?|abstracts?|memos?|faxes|fax|screenplays?|scripts?|diar(?:y|ies)"
    r"|blog(?: posts?)?|newsletters?|translations?|self-introductions?|introductions?|profiles?|grammar|spelling|clauses?|contracts?"
    r"|minutes|prompts?|personas?|eulog(?:y|ies)|subtitles|captions?|forms|surveys?|testimon(?:y|ies)|user stor(?:y|ies)|intake"
    r"|acceptance criteria|voice memos?|sentiment|tone|(?:past|present) tense|(?:third|second) person|entities|keywords|monologues?|haikus?"
    r"|jokes?|red flags)"
)
_VERB = (
    r"(?:answer|reply|respond|translate|summari[sz]e|proofread|proof-read|rewrite|re-write|rephrase|reword|paraphrase|shorten|condense"
    r"|polish|correct|edit|transcribe|make|turn|continue|tl;?dr)"
)
"""Verbs that make a request one about a text even if the text is only pointed to: "translate this"."""
_ANY_VERB = (
    r"(?:improve|check|review|revise|fix|format|analy[sz]e|classify|extract|read|explain|complete|finish|grade|score|rate|evaluate"
    r"|put|see|convert|compare|look at|feedback|thoughts|opinion|help|react|handle|write|draft|compose|create|generate|label|tag|parse|redact"
    r"|anonymi[sz]e|roast|critique|simplify|tidy|clean|rank|pick|sort|cluster|punch|comments|what|which|who|how|is|does|do|are)"
)
_HEADING = (
    r"(?:cv|r[eé]sum[eé]|cover letter|interview|transcript|ticket|e-?mail|letter|article|essay|testimonial|persona|user stor(?:y|ies)"
    r"|voice memo|statement|intake|sentiment|monologue|(?:feedback|message|answer|quote) (?:from|by))"
)
_POINTER = r"(?:this|these|that|those|it|the following|following|below|above|here(?:'s| is| are)?|attached|pasted|next|previous)"
_NAMES_A_TEXT = re.compile(rf"\b{_NOUN}\b")
_ABOUT_A_NAMED_TEXT = re.compile(
    rf"\b(?:{_VERB}|{_ANY_VERB}|{_POINTER})\b.*\b{_NOUN}\b|\b{_NOUN}\b.*\b(?:below|above|follows)\b"
    rf"|^(?!.*\b(?:i|my|we)\b)[^.!?,]*\b{_HEADING}\b[^.!?]*\??$"
)
_ABOUT_A_TEXT = re.compile(
    rf"\b(?:{_VERB}\b.*\b{_POINTER}\b|what\b.*\b(?:wrote|writes?|said|says?|sent)\b"
    r"|(?:wrote|writes|sent|got|received)\b(?: (?:me|us))? (?:this|the following)\b"
    r"|(?:this|that|the|following) (?:customer|client|candidate|applicant|guest|patient|song|code|table|log|file|form|answer)s?\b"
    r"|translat\w+ (?:in)?to\b|in the (?:first person|style|voice) of?\b|tl;?dr\b|(?:saw|found|read) (?:this|it|the following)\b"
    r"|fill in the (?:gaps?|blanks?)\b|(?:which|what) song\b|(?:grammar|spell\w*)[ -]check\b)"
    r"| (?<!\bi )(?:says?|said|writes?|wrote|texted|messaged|posted|told|goes|replied|answered)(?: (?:to )?(?:me|us|him|her|like))*\W*$"
)
"""Requests about a text, written in small letters: a pattern that ignores the case is eight times slower."""
_BEGINS_REQUEST = re.compile(
    r"\W*(?:(?:grade|explain|rate|proofread|clean up|fact-?check) (?:this|these|the)\b"
    r"|(?:please )?(?:put|turn|convert|change|bring) (?:this |it |that )?(?:in(?:to)?|to) )"
    r"|(?:let'?s )?(?:pretend|role-?play|act as|play the)\b"
)
"""Beginnings of such requests."""
_ABOUT_ABOVE = re.compile(
    rf"^\^|\b(?:above|preceding|previous)\b|\b(?:this|that|these|it|the {_NOUN})\b", re.IGNORECASE
)
_OWN_HEADING = re.compile(
    r"\babout (?:me|myself|us|my)\b|^\W*(?:here (?:is|are) |some |a few |all )*(?:of )?(?:my|our) (?:[\w-]+ ){0,3}[\w-]+\W*:$"
    r"|^.{0,60}\b(?:context|background|constraints?|details|info(?:rmation)?|preferences?|facts|goals?|requirements?|remember"
    r"|note|know|fyi|update|me|allerg\w+)(?: for later)?\W*:$|^\W*(?:find|recommend|suggest|get|book|plan)\b.*:$",
    re.IGNORECASE,
)
_TOLD_BY = re.compile(
    r"\b(?:texted|messaged|wrote|writes?|said|says?|sent|sends|asked|asks|posted|replied|answered|got|received)\b",
    re.IGNORECASE,
)
_DID = re.compile(r"^\W*(?:i|we|my)\b(?! (?:need|want|would|have to|must)\b|'d\b)", re.IGNORECASE)
_GREETING = (
    r"(?:dear|hi|hello|hey|good (?:morning|afternoon|evening|day)|greetings|to whom it may concern|hallo|guten (?:tag|morgen|abend)"
    r"|hola|buen[oa]s (?:días|tardes|noches)|bonjour|bonsoir|salut)\b"
)
_GREETING_LINE = re.compile(
    rf"^\W*{_GREETING}[^.?]{{0,40}}[,.!:]?\s*$|^\W*{_GREETING}(?: [A-Z][\w.'-]+){{0,3}},\s", re.IGNORECASE
)
_SALUTATION = re.compile(
    r"^\W*(?:(?:dear|sehr geehrte[rs]?|liebe[rs]?|estimad[oa]s?|querid[oa]s?|ch[eè]re?s?|madame|monsieur)\b[^?]{1,60}[,:]|to whom it may concern\W*)\s*$",
    re.IGNORECASE,
)
_HEAD_OF_MAIL = re.compile(
    r"^\W*(?:from|to|cc|bcc|subject|sent|date|reply-to|von|an|betreff|de|para|asunto|à|objet):\s*\S"
    r"|^\W*-*\s*(?:begin )?(?:forwarded|original|weitergeleitete) (?:message|nachricht)\b",
    re.IGNORECASE,
)
_WROTE = re.compile(r"\b(?:wrote|schrieb):$", re.IGNORECASE)
_RULE = re.compile(r"^\s*([-=*_#~+])(?:\s*\1){2,}\s*$")
OWN_LABEL = (
    r"(?:fyi|(?:please )?(?:note|remember)(?: this| that)?|(?:find|recommend|suggest|get|book|plan)\b[^:]{1,40}|location|fun fact|nb|ps|p\.s\.|btw|by the way|update|edit|correction|reminder|also|me|my [\w ]{1,30}|(?:quick )?intro|context|background"
    r"|facts?|about me|request|question|important|one (?:more|last|other) thing|heads up|wichtig|übrigens|kontext|über mich|(?:zur )?info|hinweis"
    r"|nachtrag|frage|importante|por cierto|contexto|sobre mí|nota|pregunta|pour info|au fait|contexte|à propos(?: de moi)?)"
)
"""Words before a colon that introduce the user's own words; other words before a colon are a speaker's label."""
_LABEL = re.compile(
    rf"^\W*(?!(?i:{OWN_LABEL})\s*:)"
    r"[A-Z][\w.'-]*(?: [\w.'()-]+){0,3}\s*:\s+(?:(?:hi|hello|hey|yes|no|well|so|oh)\b[,.!]* )?(?:I|I'm|I've|My|my|We|we|i|i'm|Our"
    r"|Ich|Mein|Meine|Wir|Yo|Me|Mi|Soy|Vivo|Trabajo|Je|J'\w+|Mon|Ma|Nous)\b"
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_CLOCK = r"\d{1,2}:\d{2}(?:[:.,]\d{2,3})*(?: ?[AaPp]\.?[Mm]\.?)?"
_STAMPED = re.compile(
    rf"^\W*(?:[\d./-]{{6,10}},? )?(?:{_CLOCK}[\]) -]+[^:]{{1,30}}:\s|\d{{1,2}}:\d\d:\d\d\b)"
    rf"|^\w[\w.']*(?: (?!at\b)[\w.']+){{0,2}}[ ,(\u2014\u2013-]+(?:(?:[Tt]oday|[Yy]esterday)[, ]+(?:at )?)?{_CLOCK}\W*$"
)
"""A line of a chat log or a transcript: it begins with a time, or is a speaker's name and a time."""
_BARE_REQUEST = re.compile(
    rf"^\W*(?:(?:and|now|can you|could you|please|pls|kindly) )*{_VERB}(?! (?:me|us|an?|my)\b)(?: [\w'-]+){{0,5}}\W*$",
    re.IGNORECASE,
)
"""A request about a text that names none, such as "translate to German"."""
_THIS_TEXT = re.compile(rf"\bthis {_NOUN}\b.*\?$", re.IGNORECASE)
_LATIN = re.compile(r"[a-zà-ÿ]", re.IGNORECASE)
_OTHER_SCRIPT = re.compile(r"[\u0370-\u1dff\u3040-\ud7ff]")


def own_words(text: str) -> str:
    """Returns the text without what is pasted or quoted, each quotation replaced by an ellipsis."""
    text = text[:MOST_READ]
    lines = (_BLOCK.sub(_GAP, text) if _QUOTES.search(text) else text).splitlines()
    written = [index for index, line in enumerate(lines) if line.strip(" …\t")]
    if not written:
        return ""
    first, last = written[0], written[-1]
    if last > first and _is_about_above(lines, last):
        return _own_part(lines[last].strip())[0]
    for index in written:
        line = lines[index].strip()
        below = index > first and (_GREETING_LINE.search(line) or _RULE.search(line))
        is_mail = _SALUTATION.search(line) or _HEAD_OF_MAIL.search(line) or (line.endswith(":") and _WROTE.search(line))
        if below or is_mail or _STAMPED.search(line) or (":" in line and _LABEL.search(line)):
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
        own = _OWN_HEADING.search(line[-LONGEST:]) and not _TOLD_BY.search(line) and not _is_about_a_text(line)
        return line, not own
    if _is_of_other_script(line):
        return line, True
    sentences = _SENTENCE.split(line)
    for number, sentence in enumerate(sentences, start=1):
        if _is_about_a_text(sentence):
            follows = sentences[number] if number < len(sentences) else ""
            quoted = follows and (_THIS_TEXT.search(sentence) or re.match(_GREETING, follows, re.IGNORECASE))
            return " ".join(sentences[:number]) if quoted else line, True
    return line, False


def _is_about_a_text(sentence: str) -> bool:
    """Returns whether a sentence asks about a text, or announces one; a report of what the user did does neither."""
    begin = sentence[:LONGEST].lower()
    if _DID.search(begin) and not _TOLD_BY.search(begin):
        return False
    return bool(
        _ABOUT_A_TEXT.search(begin)
        or _BEGINS_REQUEST.match(begin)
        or (_NAMES_A_TEXT.search(begin) and _ABOUT_A_NAMED_TEXT.search(begin))
        or asks_about_a_text(begin)
    )


def _is_of_other_script(line: str) -> bool:
    """Returns whether most letters of a line are of a script in which no facts are read, such as Arabic."""
    return not line.isascii() and len(_OTHER_SCRIPT.findall(line)) > len(_LATIN.findall(line))


def _is_about_above(lines: list[str], index: int) -> bool:
    """Returns whether a request that ends the turn is about the text above it: it stands apart, or names it."""
    line, before = lines[index].strip(), lines[index - 1]
    apart = not before.strip() or _RULE.search(before) is not None
    if re.search(r"\b(?:above|preceding)\b", line):
        return apart or _own_part(line)[1]
    return apart and (
        _is_of_other_script(line)
        or (_own_part(line)[1] and (asks_about_a_text(line.lower()) or bool(_ABOUT_ABOVE.search(line))))
        or bool(_BARE_REQUEST.search(line))
    )
