"""Facts in German, Spanish and French: name, home, work, likes and goals, where the form of the sentence is clear.

Each rule matches a clause from its beginning, in the first person. Clauses with a condition or a report are left out.
A clause with a negation states only an aversion; a clause with "no longer" ends a fact.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from retrieval.tables.kinds import FactKind
from writer.facts.forms import CAPITAL
from writer.facts.own_words import OWN_LABEL


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern of a clause that states a fact.

    Attributes:
        attribute: attribute that the clause states; empty for a goal, whose words give the metric.
        form: the pattern; its group ``value`` is the value of the fact.
        single: whether the attribute has only one value at a time.
    """

    kind: FactKind
    attribute: str
    form: re.Pattern[str]
    single: bool = True


@dataclass(frozen=True, slots=True)
class Language:
    """The rules of a language.

    Attributes:
        opens: words; every clause that a rule can match has one of them.
        rules: rules for clauses without a negation.
        aversions: rules for clauses with a negation, which state a dislike.
        unstated: words of sentences that state nothing, such as conditions; such sentences are skipped.
        denied: words that negate a clause.
        no_longer: words for "no longer"; without them, the clause is the fact that it ends.
        vague: beginnings of values that refer to something outside the clause, such as "this".
        article: an article at the beginning of a value, which is cut off.
    """

    opens: re.Pattern[str]
    rules: tuple[Rule, ...]
    aversions: tuple[Rule, ...]
    unstated: re.Pattern[str]
    denied: re.Pattern[str]
    no_longer: re.Pattern[str]
    vague: re.Pattern[str]
    article: re.Pattern[str]


_NAME = (
    rf"(?P<value>{CAPITAL}[\w'.-]+(?: (?:(?:de|del|la|las|los|am|an der|der|le|sur|d')\s?)?{CAPITAL}[\w'-]+){{0,3}})"
)
_WORDS = r"(?P<value>(?:(?!(?:und|aber|weil|denn|da|wie|pero|porque|aunque|y|et|mais|car|parce|que)\b)[\w'-]+ ?){1,6})"
_END = r"(?=$|[.,;!)]| (?:und|aber|weil|denn|seit|mit|als|y|pero|porque|desde|con|et|mais|car|depuis|avec|comme|jetzt|ahora|maintenant)\b)"
_HELLO = r"(?:(?:hallo|hi|hey|hola|bonjour|salut|moin|servus|also|übrigens|por cierto|au fait|und|y|et)\b[,!.]*\s+)?"


_TASTES = {"likes", "loves", "hates", "prefers", "favourite", "dislikes"}
_SINGLE = {"name", "home", "origin", "employer", "role", "age", "diet", "favourite", "weight"}


def _rules(**forms: str) -> tuple[Rule, ...]:
    """Returns the rules of these forms by the attribute that they state; NAME and WORDS stand for the value."""
    return tuple(
        Rule(
            "preference" if name in _TASTES else "goal" if name in {"goal", "weight"} else "fact",
            "" if name == "goal" else name,
            re.compile(f"^(?i:{_HELLO})" + form.replace("NAME", _NAME).replace("WORDS", _WORDS) + _END),
            name in _SINGLE,
        )
        for name, form in forms.items()
    )


def _any(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.IGNORECASE)


LANGUAGES = (
    Language(
        _any("ich|meine?|nenn|wohne|lebe|arbeite|hasse"),
        _rules(
            name=r"(?i:ich hei(?:ß|ss)e|mein name ist|nenn mich) NAME",
            home=r"(?i:(?:ich )?(?:wohne|lebe)(?: (?:jetzt|derzeit|zurzeit|inzwischen|gerade))? in|(?P<moved>ich bin (?:gerade |kürzlich |jetzt )?(?:von \w+ )?nach)) NAME(?(moved) (?:um)?gezogen)",
            origin=r"(?i:ich komme (?:ursprünglich )?aus) NAME",
            employer=r"(?i:(?:ich )?arbeite(?: (?:jetzt|derzeit|zurzeit))? (?:bei|für)(?: der| dem)?) NAME",
            role=r"(?i:(?:ich )?arbeite als) (?P<value>[\w-]+(?: [\w-]+)?)",
            age=r"(?i:ich bin) (?P<value>\d{1,3})(?: Jahre alt)?",
            diet=r"(?i:ich bin|ich lebe|ich esse) (?P<value>[Vv]egetarier(?:in)?|[Vv]eganer(?:in)?|vegetarisch|vegan)",
            allergy=r"(?i:ich bin allergisch (?:gegen|auf)) WORDS",
            loves=r"(?i:ich liebe) WORDS",
            likes=r"(?i:ich mag) WORDS",
            hates=r"(?i:(?:ich )?hasse) WORDS",
            prefers=r"(?i:ich bevorzuge) WORDS",
            favourite=r"(?i:meine?) Lieblings(?P<what>\w+) ist WORDS",
            goal=r"(?:(?i:mein ziel ist(?: es)?),? (?P<value>[^.!;]{4,120})|(?i:ich (?:will|möchte)) (?P<value2>[^.!;,]{2,80} (?:abnehmen|zunehmen|sparen|lernen|wiegen)))",
            weight=r"(?i:mein zielgewicht (?:ist|sind|beträgt|liegt bei)) (?P<value>[\d.,]+ ?\w+)",
        ),
        _rules(
            dislikes=r"(?i:ich mag) (?:keine?n? WORDS|(?P<value2>[\w' -]{3,40}?) (?:gar |überhaupt )?nicht)",
        ),
        _any(
            r"wenn|falls|würde|könnte|hätte|wäre|vielleicht|angeblich|sagte?|meinte?|glaubt|ob|stell dir vor|nehmen wir an|früher|fast"
        ),
        _any(r"nicht|nie|niemals|keine?[nmrs]?"),
        re.compile(r"\b(?:nicht mehr|nicht länger|keine?[nmrs]?(?=[^.]* mehr\b))\b", re.IGNORECASE),
        _any(r"es|das|dies\w*|dich|dein\w*|euch|eu(?:er|re)\w*|ihn|sie|wie|dass|was|alles|jede\w*|ihr\w*"),
        re.compile(r"^(?:den|die|das|der|dem|einen?|eine) ", re.IGNORECASE),
    ),
    Language(
        _any(
            "me (?:llamo|mudé|he|gustan?|encantan?)|mudarme|llámame|mi|yo|soy|vivo|resido|trabajo|tengo|amo|adoro|odio|detesto"
            "|prefiero|quiero"
        ),
        _rules(
            name=r"(?i:me llamo|mi nombre es|yo soy|llámame) NAME",
            home=r"(?i:(?:yo )?vivo(?: (?:ahora|actualmente))? en|resido en|me mudé a|me he mudado a|acabo de mudarme a) NAME",
            origin=r"(?i:(?:yo )?soy de) NAME",
            employer=r"(?i:(?:yo )?trabajo(?: (?:ahora|actualmente))? (?:en|para)) NAME",
            role=r"(?i:(?:yo )?trabajo (?:como|de)) (?P<value>[\w-]+(?: [\w-]+)?)",
            age=r"(?i:tengo) (?P<value>\d{1,3}) años",
            diet=r"(?i:(?:yo )?soy) (?P<value>vegetarian[oa]|vegan[oa]|celíac[oa]|intolerante a la lactosa)",
            allergy=r"(?i:(?:yo )?soy alérgic[oa] (?:a|al)) WORDS",
            likes=r"(?i:(?:a mí )?me gustan?(?: mucho)?) WORDS",
            loves=r"(?i:(?:a mí )?me encantan?|amo|adoro) WORDS",
            hates=r"(?i:odio|detesto) WORDS",
            prefers=r"(?i:prefiero) WORDS",
            favourite=r"(?i:mi) (?P<what>\w+) (?:favorit[oa]|preferid[oa]) es WORDS",
            goal=r"(?:(?i:mi (?:objetivo|meta) es) (?P<value>[^.!;]{4,120})|(?i:quiero) (?P<value2>(?:ahorrar|perder|bajar|adelgazar|aprender|dejar de|correr|pesar) [^.!;,]{2,80}))",
        ),
        _rules(
            dislikes=r"(?i:(?:a mí )?no me gustan?(?: nada)?) WORDS",
        ),
        _any(r"si|tal vez|quizás?|ojalá|dice|dijo|cree|podría|gustaría|encantaría|imagina|supongamos|casi|antes"),
        _any(r"no|nunca|jamás|tampoco|ningun[oa]?"),
        _any(r"ya no"),
        _any(r"es[oae]s?|est[oae]s?|tus?|sus?|vuestr\w+|cómo|lo|que|todo|la idea|te|más"),
        re.compile(r"^(?:el|la|los|las|un|una) ", re.IGNORECASE),
    ),
    Language(
        _any("je|j'\\w+|appelle-moi|appelez-moi|mon|ma"),
        _rules(
            name=r"(?i:je m'appelle|mon (?:nom|prénom) est|appelle-moi|appelez-moi) NAME",
            home=r"(?i:j'habite(?: maintenant| actuellement)?|je vis|j'ai (?:récemment )?déménagé|je viens d'emménager) (?:à|en|au|aux) NAME",
            origin=r"(?i:je viens (?:de |d'))NAME",
            employer=r"(?i:je travaille(?: maintenant| actuellement)? (?:chez|pour)) NAME",
            role=r"(?i:je travaille comme) (?P<value>[\w-]+(?: [\w-]+)?)",
            age=r"(?i:j'ai) (?P<value>\d{1,3}) ans",
            diet=r"(?i:je suis) (?P<value>végétarien(?:ne)?|végane|vegan|végétalien(?:ne)?|intolérante? au lactose|cœliaque)",
            allergy=r"(?i:je suis allergique (?:aux|au|à la|à l'|à)) ?WORDS",
            likes=r"(?i:j'aime(?: beaucoup| bien)?) WORDS",
            loves=r"(?i:j'adore) WORDS",
            hates=r"(?i:je déteste) WORDS",
            prefers=r"(?i:je préfère) WORDS",
            favourite=r"(?i:mon|ma) (?P<what>\w+) (?:préférée?|favorite?) est WORDS",
            goal=r"(?:(?i:mon (?:objectif|but) est) (?:de |d')(?P<value>[^.!;]{4,120})|(?i:je veux) (?P<value2>(?:perdre|économiser|épargner|apprendre|arrêter de|courir|peser) [^.!;,]{2,80}))",
        ),
        _rules(
            dislikes=r"(?i:je n'aime pas(?: du tout)?) WORDS",
        ),
        _any(
            r"si|peut-être|dit|disait|pense|croit|voudrais|aimerais|pourrais|imagine|imaginons|supposons|presque|avant"
        ),
        re.compile(r"\b(?:ne|pas|jamais|aucune?)\b|\bn'", re.IGNORECASE),
        re.compile(r"\b(?:ne |n')(?=[^.]*\bplus\b)", re.IGNORECASE),
        _any(r"ça|cela|ce|cet|cette|ces|ton|ta|tes|vos|votre|que|quand|comment|tout|l'idée|te|vous"),
        re.compile(r"^(?:les?|la|l'|une?|des|du) ?", re.IGNORECASE),
    ),
)


OPENS = re.compile("|".join(language.opens.pattern for language in LANGUAGES), re.IGNORECASE)
"""Every German, Spanish or French sentence with a fact has one of these words."""
PERIOD = re.compile(
    r"\b(?:im|pro|am|al|por|cada|par|chaque) (?:tag|woche|monat|jahr|día|semana|mes|año|jour|semaine|mois|an)\b",
    re.IGNORECASE,
)
"""A period in the words of a goal, such as "per week", which is no part of the metric."""
_ELISION = re.compile(r"^je (?=[aeéhiou])", re.IGNORECASE)
_LABEL = re.compile(rf"^{OWN_LABEL}\s*:\s+", re.IGNORECASE)
_CLAUSE = re.compile(r"\s*[,;]\s*|\s+(?:und|aber|y|e|pero|et|mais)\s+")


@dataclass(frozen=True, slots=True)
class Reading:
    """A fact that a clause states, or ends if `ends` is true."""

    text: str
    kind: FactKind
    attribute: str
    value: str
    single: bool
    ends: bool = False


def readings(sentence: str) -> Iterator[Reading]:
    """Yields the facts that a sentence in German, Spanish or French states or ends, as a whole and in its clauses."""
    plain = _LABEL.sub("", sentence.replace("\u2019", "'").strip("-*_ \t"))
    if "?" in plain:
        return
    for language in LANGUAGES:
        if not language.opens.search(plain) or language.unstated.search(plain):
            continue
        for clause in (plain, *_CLAUSE.split(plain)):
            if language.no_longer.search(clause):
                positive = re.sub(r"\b(?:mehr|plus)\b", "", language.no_longer.sub(" ", clause))
                positive = _ELISION.sub("j'", " ".join(positive.split()))
                yield from _matches(language, language.rules, clause, positive, ends=True)
            elif language.denied.search(clause):
                yield from _matches(language, language.aversions, clause, clause)
            else:
                yield from _matches(language, language.rules, clause, clause)


def _matches(
    language: Language, rules: tuple[Rule, ...], text: str, plain: str, *, ends: bool = False
) -> Iterator[Reading]:
    """Yields what the rules read off a clause in its plain form."""
    for rule in rules:
        match = rule.form.search(plain)
        if match is None:
            continue
        groups = match.groupdict()
        value = " ".join((groups["value"] or groups.get("value2") or "").split()).rstrip(" .,!;")
        if rule.kind == "preference":
            if language.vague.match(value):
                continue
            value = language.article.sub("", value)
        attribute = f"{rule.attribute} {groups['what'].lower()}" if "what" in groups else rule.attribute
        if value:
            yield Reading(text, rule.kind, attribute, value, rule.single, ends)
