"""Requests about a text ("translate this mail") in German, Spanish and French; the text is not in the user's own words.

Its nouns and pointing words include those of Dutch, Italian and Portuguese, because texts to be translated have them.
"""

import re

_NOUN = (
    r"(?:e-?mails?|mails?|contrat[oi]?s?|vertrag\w*|verträge|cl[aá]usulas?|cvs?|tickets?|chats?|interviews?|posts?|tweets?|memos?"
    r"|brief\w*|schreiben|nachricht(?:en)?|text(?:e[sn]?|s)?|lebensl[aä]uf\w*|bewerbung\w*|anschreiben|artikel\w*|aufs[aä]tz\w*|gedicht\w*"
    r"|abs[aä]tz\w*|s[aä]tz(?:e[sn]?)?|beschwerde\w*|rezension\w*|bewertung\w*|protokoll\w*|gespr[aä]ch\w*|dokument\w*|aussagen?|kommentar\w*"
    r"|correos?|cartas?|mensajes?|textos?|curr[ií]culums?|art[ií]culos?|ensayos?|p[aá]rrafos?|frases?|oraci[oó]n|entrevistas?|rese[nñ]as?|quejas?"
    r"|comentarios?|solicitud|documentos?|transcripci[oó]n|poemas?|cuentos?|di[aá]logos?"
    r"|courriels?|lettres?|messages?|articles?|essais?|paragraphes?|phrases?|entretiens?|avis|plaintes?|r[eé]clamations?|commentaires?"
    r"|candidatures?|documents?|po[eè]mes?|dialogues?|histoires?|discours"
    r"|teksten?|tekst|berichten?|lettera|testo|messaggio|frase|mensage(?:m|ns)"
    r"|kunden?|kundin|bewerbers?|clientes?|candidat[oa]s?|clients?|candidate?s?|klanten?|klant)"
)
_THIS = (
    r"(?:dies(?:e[mnrs]?)?|folgende[mnrs]?|obige[mnrs]?|beigef[uü]gte[mnrs]?|d?est[ea]s?|siguientes?|cet?|cette|ces|deze|dit|volgende"
    r"|quest[oa]|seguente|seguinte)"
)
_THE = (
    r"(?:d(?:ie|as|e[mnrs])|(?:mein|dein|sein|ihr|unser)(?:e[mnrs]?)?|el|la|los|las|mis?|tus?|sus?|l[ae]s?|mon|ma|mes|ton|ta|son|sa|une?"
    r"|al|aux?|du)"
)
_ALONE = (
    r"(?:übersetz|korrigier|korrektur|lektorier|redigier|paraphras|umformulier|umschreib|zusammenfass|zusammenzufassen|trad[uú]c|traduz|tradui"
    r"|corr[ií]g|correg|resum(?:e|en|a|ir|ido|irme|eme|ame)\b|resúm|reescr[ií]b|reformul|acort|résum|réécri|raccourci|vertaal|riassum"
    r"|przetłumacz|popraw|streść|översätt|oversæt|oversett|rätta|korriger|kääntää|käännä|přelož|oprav|fordít|traduç|tradurr|çevir|düzelt|özetle"
    r"|riscriv|verific|correggi|corrij|resum[aie]|reescrev)\w*"
    r"|\bfass(?:e|t|en)?\b.*\bzusammen|\b(?:formulier|schreib)(?:e|t|en)?\b.*\bum\b"
)
"""Verbs that make any request one about a text, such as "translate"."""
_WITH_A_NOUN = (
    r"(?:(?:(?:be)?antwort|verbesser|(?:über)?prüf|kürz|schreib|analysier|bewert|überarbeit|glätt|vereinfach|klassifizier"
    r"|respond|contest|revis|mejor|analiz|eval[uú]|opin|clasific"
    r"|répond|amélior|vérifi|analys|reli[rs]|évalu)\w*|lies|lest|lesen|mach(?:e|t|en)?|lee|lea|leer|piensas?|lis|lisez|lire|pense[sz])"
)
_ABOUT_A_TEXT = re.compile(
    rf"\b{_THIS}\b (?:[\w-]+ )?{_NOUN}\b|\b{_NOUN} (?:siguientes?|suivante?s?|ci-dessous|de abajo|unten|hier)\b"
    rf"|\b(?:{_ALONE})|\b{_WITH_A_NOUN}\b.*\b(?:{_THE} (?:[\w-]+ )?{_NOUN}\b|daraus\b|das(?= \w+er\b))"
    r"|\bins \w+ische\b|\b(?:mir|uns)\b.*\b(?:geschrieben|geschickt|gesendet)\b|\b(?:schrieb|schreibt|schickt)e? (?:mir|uns)\b"
    r"|\b(?:me|nos) (?:(?:ha|han) )?(?:escribi[oó]|escriben?|escribieron|escrito|mand[oó]|manda[dn]o?|envi[oó]|enviado|enviaron)\b"
    r"|\b(?:m'|nous )(?:(?:a|ont) (?:écrit|envoyé)|écrit)\b"
)
_OWN_DOING = re.compile(
    r"^\W*(?:(?:ich|wir)\b(?! (?:möchte|will|wollen|muss|müssen|brauche|soll)\b)|(?:yo|nosotros|he|hemos)\b"
    r"|(?:je|nous)\b(?! (?:veux|voudrais|dois|devons|a)\b)|j'(?!aimerais\b))"
)
_ENGLISH = re.compile(r"\b(?:the|you|your|my|this|please|to|of|and|i|it|can)\b")
"""Frequent English words: a sentence with one of them is English, and is not searched."""


def asks_about_a_text(sentence: str) -> bool:
    """Returns whether a German, Spanish or French sentence, in small letters, asks about a text or names its writer."""
    return not _ENGLISH.search(sentence) and bool(_ABOUT_A_TEXT.search(sentence)) and not _OWN_DOING.search(sentence)
