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
    r"|“[^”]*”|„[^“”]*[“”]|«[^»]*»|「[^」]*」|^\s*\"[^\"]*\"\s*$|\"[^\"\n]*\"|(?<!\w)'[^'\n]{3,}'(?!\w)|^\s*>.*$",
    re.DOTALL | re.MULTILINE,
)
_NOUN = (
    r"(?:e-?mails?|mails?|letters?|messages?|texts?|cvs?|r[eé]sum[eé]s?|tickets?|documents?|docs?|interviews?|transcripts?|articles?"
    r"|essays?|paragraphs?|sentences?|stor(?:y|ies)|poems?|reviews?|posts?|tweets?|notes|conversations?|chats?|threads?|reports?"
    r"|bios?|biograph(?:y|ies)|drafts?|passages?|excerpts?|quot(?:es?|ations?)|comments?|complaints?|testimonials?|dialogues?"
    r"|speech(?:es)?|lyrics|applications?|statements?|abstracts?|memos?|faxes|fax|screenplays?|scripts?|diar(?:y|ies)"
    r"|blog(?: posts?)?|newsletters?|translations?|self-introductions?|introductions?|profiles?|grammar|spelling)"
)
_VERB = (
    r"(?:answer|reply|respond|translate|summari[sz]e|proofread|proof-read|rewrite|re-write|rephrase|reword|paraphrase|shorten|condense"
    r"|polish|correct|edit|transcribe|make|turn|continue|tl;?dr)"
)
"""Verbs that make a request one about a text even if the text is only pointed to: "translate this"."""
_ANY_VERB = (
    r"(?:improve|check|review|revise|fix|format|analy[sz]e|classify|extract|read|explain|complete|finish|grade|score|rate|evaluate"
    r"|convert|compare|look at|feedback|thoughts|opinion|help|react|handle|write|draft|compose|create|generate|label|tag|parse|redact"
    r"|anonymi[sz]e|what|which|who|how|is|does|do|are)"
)
_HEADING = r"(?:cv|r[eé]sum[eé]|cover letter|interview|transcript|ticket|e-?mail|letter|article|essay|testimonial)"
_POINTER = r"(?:this|these|that|those|it|the following|following|below|above|here(?:'s| is| are)?|attached|pasted|next|previous)"
_NAMES_A_TEXT = re.compile(rf"\b{_NOUN}\b")
_ABOUT_A_NAMED_TEXT = re.compile(
    rf"\b(?:{_VERB}|{_ANY_VERB}|{_POINTER})\b.*\b{_NOUN}\b|\b{_NOUN}\b.*\b(?:below|above|follows)\b"
    rf"|^(?!.*\b(?:i|my|we)\b)[^.!?,]*\b{_HEADING}\b[^.!?]*$"
)
_ABOUT_A_TEXT = re.compile(
    rf"\b{_VERB}\b.*\b{_POINTER}\b|\bwhat\b.*\b(?:wrote|writes?|said|says?|sent)\b"
    r"|\b(?:wrote|writes|sent|got|received)\b(?: (?:me|us))? (?:this|the following)\b"
    r"|\b(?:this|that|the|following) (?:customer|client|candidate|applicant|guest|patient)s?\b"
    r"|\btranslat\w+ (?:in)?to\b|\bin the (?:first person|style|voice) of?\b|\btl;?dr\b"
)
"""Requests about a text, written in small letters: a pattern that ignores the case is eight times slower."""
_ABOUT_ABOVE = re.compile(rf"\b(?:above|preceding|previous)\b|\b(?:this|that|these|it|the {_NOUN})\b", re.IGNORECASE)
_OWN_HEADING = re.compile(
    r"\babout (?:me|myself|us|my)\b|^\W*(?:here (?:is|are) |some |a few |all )*(?:of )?(?:my|our) (?:[\w-]+ ){0,3}[\w-]+\W*:$"
    r"|^.{0,60}\b(?:context|background|constraints?|details|info(?:rmation)?|preferences?|facts|goals?|requirements?|remember"
    r"|note|know|fyi|update|me|allerg\w+)\W*:$",
    re.IGNORECASE,
)
_TOLD_BY = re.compile(
    r"\b(?:wrote|writes?|said|says?|sent|sends|asked|asks|posted|replied|answered|got|received)\b", re.IGNORECASE
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
    r"(?:fyi|(?:please )?note|nb|ps|p\.s\.|btw|by the way|update|edit|correction|reminder|also|me|my [\w ]{1,30}|(?:quick )?intro|context|background"
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


def own_words(text: str) -> str:
    """Returns the text without what is pasted or quoted, each quotation replaced by an ellipsis."""
    text = text[:MOST_READ]
    lines = (_BLOCK.sub(_GAP, text) if _QUOTES.search(text) else text).splitlines()
    written = [index for index, line in enumerate(lines) if line.strip(" …\t")]
    if not written:
        return ""
    first, last = written[0], written[-1]
    for index in written:
        line = lines[index].strip()
        below = index > first and (_GREETING_LINE.search(line) or _RULE.search(line))
        is_mail = _SALUTATION.search(line) or _HEAD_OF_MAIL.search(line) or (line.endswith(":") and _WROTE.search(line))
        if below or is_mail or (":" in line and _LABEL.search(line)):
            return "\n".join(lines[:index])
        own, leads = _own_part(line)
        if index == last and index > first and leads and _is_about_above(lines, index):
            return own
        if leads and (index < last or own != line):
            return "\n".join([*lines[:index], own])
    return "\n".join(lines)


def _own_part(line: str) -> tuple[str, bool]:
    """Returns the user's own part of a line, and whether the lines below it are pasted."""
    before, colon, after = line.partition(": ")
    if colon and after and _is_about_a_text(before):
        return before, True
    if line.endswith((":", "\uff1a")):
        own = _OWN_HEADING.search(line[-LONGEST:]) and not _TOLD_BY.search(line) and not _is_about_a_text(line)
        return line, not own
    sentences = _SENTENCE.split(line)
    for number, sentence in enumerate(sentences, start=1):
        if _is_about_a_text(sentence):
            quoted = number < len(sentences) and re.match(_GREETING, sentences[number], re.IGNORECASE)
            return " ".join(sentences[:number]) if quoted else line, True
    return line, False


def _is_about_a_text(sentence: str) -> bool:
    """Returns whether a sentence asks about a text, or announces one; a report of what the user did does neither."""
    begin = sentence[:LONGEST].lower()
    if _DID.search(begin) and not _TOLD_BY.search(begin):
        return False
    return bool(
        _ABOUT_A_TEXT.search(begin)
        or (_NAMES_A_TEXT.search(begin) and _ABOUT_A_NAMED_TEXT.search(begin))
        or asks_about_a_text(begin)
    )


def _is_about_above(lines: list[str], index: int) -> bool:
    """Returns whether a request that ends the turn is about the text above it: it stands apart, or names it."""
    apart = not lines[index - 1].strip()
    return bool(re.search(r"\b(?:above|preceding)\b", lines[index]) or (apart and _ABOUT_ABOVE.search(lines[index])))
