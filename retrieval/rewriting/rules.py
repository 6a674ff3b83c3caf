"""Rewrites a user's message into the query that cases and procedures are searched for, by rule."""

from dataclasses import dataclass

import re2

from retrieval.ports import Rewritten

LONGEST_RULED = 4_000
"""Longest query that is rewritten by rule, in characters; a longer one is a document, and stays as it is."""
MOST_ROUNDS = 8
"""Rounds of removal, for a removal may uncover more; a query that needs more rounds stays unchanged."""
LONGEST_PREFIX = len("Troubleshooting: ")

_GREETING = (
    r"(?:h(?:i|ello|ey)(?: there| all| team| everyone)?|good (?:morning|afternoon|evening|day)|greetings"
    r"|dear (?:team|support|all|sir or madam)"
    r"|hallo(?: zusammen)?|guten (?:tag|morgen|abend)|moin|servus|grüezi|liebes team|sehr geehrte damen und herren"
    r"|bonjour(?: à tous)?|bonsoir|salut|coucou|hola(?: a todos)?|buen(?:os|as) (?:días|dias|tardes|noches)"
    r"|ciao|buongiorno|olá|oi)"
)
_POLITE = (
    r"(?:please|kindly|bitte|s['\x{2019}]il (?:vous|te) pla[iî]t|svp|por favor|per favore"
    r"|(?:can|could|would|will) (?:you|someone|anybody|anyone)(?: please)?(?: help me(?: to)?)?|help me(?: to)?"
    r"|i(?: would|['\x{2019}]d) like(?: you)? to|i (?:need|want)(?: you)? to|i(?:['\x{2019}]m| am) trying to"
    r"|we (?:need|want) to"
    r"|(?:kannst|könntest) du(?: mir)?(?: bitte)?|(?:können|könnten) sie(?: mir)?(?: bitte)?"
    r"|ich (?:möchte|muss|will)(?: bitte)?|wir müssen"
    r"|(?:peux[- ]tu|pouvez[- ]vous|pourriez[- ]vous|pourrais[- ]tu)(?: m['\x{2019}]aider à)?|je (?:veux|voudrais|dois)"
    r"|(?:puedes|podrías|puede|podría)(?: usted)?(?: ayudarme a)?|(?:quiero|necesito|quisiera))"
)
_THANKS = (
    r"(?:(?:many )?thanks?(?: you)?(?: (?:very|so) much| a lot)?(?: in advance)?|thx|cheers|(?:best|kind) regards"
    r"|vielen dank(?: im voraus)?|danke(?: schön| sehr| im voraus)?|(?:viele|mit freundlichen|beste) grüße|mfg"
    r"|merci(?: beaucoup| d['\x{2019}]avance)?|cordialement|(?:muchas )?gracias(?: de antemano| por adelantado)?"
    r"|saludos"
    r"|grazie(?: mille)?|obrigad[oa]|please|bitte|por favor|s['\x{2019}]il (?:vous|te) pla[iî]t)"
)
_NAME = r"\p{Lu}[\p{L}'\x{2019}-]+(?: \p{Lu}[\p{L}'\x{2019}-]+){0,2}"
_NAMED = (
    rf"(?i:my name is|ich heiße|mein name ist|je m['\x{{2019}}]appelle|me llamo|mi nombre es)"
    rf" {_NAME}(?:[.,;!]{{0,2}} (?:and|und|et|y)\b|[.,;!])?"
    rf"|(?i:i['\x{{2019}}]m|i am|ich bin|je suis|soy) {_NAME}(?:[.,;!]| (?:and|und|et|y)\b|$)"
)
_START = re2.compile(rf"(?i)^(?:{_GREETING}[\s,.!:;\x{2013}-]+|{_POLITE}[\s,:]+|[\s,.;:!?¡¿\x{2013}-]+)+")
_END = re2.compile(rf"(?i)(?:[\s,.;:!\x{2013}-]+{_THANKS})+[\s,.!]*$|[\s,;:!\x{2013}-]+$")
_PERSONAL = re2.compile(
    rf"{_NAMED}|[(<\"']?(?:[\w.%+-]+@[\w-]+(?:\.[\w-]+)+|\+\d[\d ()./-]{{6,20}}\d|\[REDACTED:[a-z-]+\])[)>\"']?"
    r"|(?i:\b(?:my|our) (?:zip|postal|post)[ -]?(?:code)? is [\w-]+)"
)
_SPACES = re2.compile(r"\s+")

_FORMED = re2.compile(
    r"(?i)^(?:how (?:to|do|can|does|should)|procedure for|troubleshoot(?:ing)?|what|why|when|where|which|who)\b"
)
_WRONG = re2.compile(
    r"(?i)\b(?:error|exception|traceback|fail(?:s|ed|ing|ure)?|crash(?:es|ed|ing)?|broken|denied|refused"
    r"|time[sd]? ?out|not working|(?:does|did|is|do)(?:n['\x{2019}]t| not) \w+|cannot|can['\x{2019}]t|unable to)\b"
)
_VERBS = re2.compile(
    r"(?i)^(?:add|allow|analy[sz]e|apply|approve|archive|assign|attach|back up|book|build|calculate|call|cancel|change"
    r"|check|clean|clear|clone|close|collect|combine|compare|compile|compute|configure|connect|convert|copy|create"
    r"|debug|decrypt|delete|deploy|design|detect|disable|download|draft|drop|edit|enable|encrypt|exchange|execute"
    r"|export|extend|extract|fetch|fill|filter|find|fix|format|generate|get|give|grant|group|identify|implement|import"
    r"|increase|index|insert|inspect|install|integrate|invite|join|launch|limit|link|list|load|lock|log|look up|make"
    r"|measure|merge|migrate|modify|monitor|move|open|optimi[sz]e|order|parse|paint|patch|pay|plan|plot|prepare"
    r"|print|process|publish|pull|purchase|push|query|read|rebuild|recover|redeploy|reduce|refactor|refund|register"
    r"|reject|release|remove|rename|renew|replace|report|request|reschedule|reset|resi[sz]e|resolve|restart|restore"
    r"|retrieve|return|review|revoke|roll ?back|rotate|run|save|scale|schedule|search|select|send|set(?: up)?|share"
    r"|ship|show|sort|split|start|stop|store|submit|summari[sz]e|switch|sync|tag|test|track|transfer|translate"
    r"|turn|uninstall|unlock|update|upgrade|upload|use|validate|verify|view|withdraw|write)\b"
)


@dataclass(frozen=True, slots=True)
class RuleRewriter:
    """Removes greetings and personal data, and puts the query in the form of a procedure or of a troubleshooting."""

    async def rewrite(self, query: str) -> Rewritten:
        """Returns the query by rule, the same for the same query."""
        return Rewritten(by_rule(query), "rules")


def by_rule(query: str) -> str:
    """Returns the query without greetings, courtesies and personal data, in a procedural form where it is English.

    Never blank unless the query is, at most LONGEST_PREFIX longer than it, and unchanged when rewritten again.
    """
    if len(query) > LONGEST_RULED:
        return query
    text = _SPACES.sub(" ", query).strip()
    for _ in range(MOST_ROUNDS):
        before, text = text, _END.sub("", _START.sub("", _PERSONAL.sub(" ", text)))
        text = str(_SPACES.sub(" ", text)).strip()
        if text == before:
            return _formed(text) if any(char.isalnum() for char in text) else query
    return query


def _formed(text: str) -> str:
    if _FORMED.search(text):
        return text
    if _WRONG.search(text):
        return f"Troubleshooting: {text}"
    return f"How to {text[:1].lower()}{text[1:]}" if _VERBS.search(text) else text
