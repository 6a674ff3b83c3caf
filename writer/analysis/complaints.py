"""Recognises complaints of the user about a wrong result, in several languages."""

from collections.abc import Iterable, Mapping
from itertools import islice

import re2

from writer.analysis.error_output import SHORT_CHARS, beginning

MOST_TURNS = 2_000
MOST_PARTS = 4

_QUOTE = r"[\"'\x{AB}\x{BB}\x{2018}-\x{201F}]"
"""Straight, angled and curly quotation marks."""
_COMPLAINT = re2.compile(
    r"(?i)\b(?:that|this|it|the (?:answer|result|output))(?: is|.s| was| looks| seems)(?: still| just"
    r"| completely| totally)?"
    r" (?:not (?:right|correct|what i (?:asked|wanted|meant|said))|wrong|incorrect|broken)"
    r"|\b(?:isn.t|wasn.t) (?:right|correct|what i (?:asked|wanted|meant))"
    r"|\b(?:did|does|do|is|still)(?: not|n.t) (?:work|help|fix)|\bnot working\b|\bstill (?:wrong|broken|failing"
    r"|the same)"
    r"|\byou (?:got|did) (?:it|that|this) wrong|\byou made a mistake|\bnot what i (?:asked|wanted|meant)"
    r"|\bdas (?:ist|war|stimmt)(?: (?:so|leider|immer|noch|doch|aber)){0,3} (?:falsch|nicht richtig"
    r"|nicht korrekt|nicht)\b"
    r"|\b(?:hat|funktioniert|klappt|geht)(?: (?:so|leider|immer|noch|das|aber)){0,3} nicht\b"
    r"|\bnicht (?:geklappt|funktioniert|das,? was ich)"
    r"|\b(?:eso|esto) (?:no es|es) (?:correcto|incorrecto|lo que|err[oó]neo)|\best[aá] mal\b"
    r"|\bno (?:ha )?funcion[aoó]|\bno es (?:correcto|lo que)"
    r"|\b(?:c.est|c.était) (?:faux|incorrect)|\bce n.(?:est|était) pas (?:correct|juste|bon|ce que|ça)"
    r"|\bpas (?:fonctionné|marché)\b"
    r"|\bne (?:fonctionne|marche) pas|\bnon (?:funziona|ha funzionato|è corretto|è giusto)|\bè sbagliato"
    r"|\b(?:não|nao) (?:funcionou|funciona|está (?:certo|correto))|\bestá errado|\bdat klopt niet|\bwerkt niet"
    r"|\bthe \w+(?: \w+){0,2} (?:is|was|looks)(?: still)? (?:wrong|incorrect|not (?:right|correct))\b"
    r"|\b(?:should|must) (?:be|say|read|have been) [^.\n]{1,80}\b(?:not|instead of)\b"
    rf"|\bi (?:asked for|wanted|said|meant) {_QUOTE}|^\W{{0,4}}not {_QUOTE}"
    r"|это неправильно|не работает|не сработало|不对|错了|没有用|不行|違います|動きません|틀렸",
)
_QUOTED_WRONG = re2.compile(
    rf"(?i){_QUOTE}[^\n]{{1,80}}{_QUOTE} (?:is|was|ist|war)(?: still| immer noch)?"
    r" (?:wrong|incorrect|not (?:right|correct)|falsch|nicht richtig)\b"
)
"""A complaint about what is quoted; a pattern by itself, because both together take five times as long."""
_DENIED = re2.compile(r"(?i)\b(?:nothing|not|never|isn.t|no longer) (?:\w+ )?(?:is )?(?:wrong|broken|incorrect)\b")


def complaints(turns: Iterable[object]) -> list[str]:
    """Returns the beginnings of the user's turns that complain about a result; the first one, the task, is not read."""
    by_user = (turn for turn in islice(turns, MOST_TURNS) if isinstance(turn, Mapping) and turn.get("role") == "user")
    texts: list[str] = []
    for turn in islice(by_user, 1, None):
        content = turn.get("content")
        parts = content if isinstance(content, list) else [content]
        values = (part.get("text") if isinstance(part, Mapping) else part for part in parts[:MOST_PARTS])
        texts += [beginning(text, SHORT_CHARS) for text in values if isinstance(text, str)]
    return [text for text in texts if _complains(text) and not _DENIED.search(text)]


def _complains(text: str) -> bool:
    return bool(_COMPLAINT.search(text) or _QUOTED_WRONG.search(text))
