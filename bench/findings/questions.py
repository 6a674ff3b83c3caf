"""Questions of an agent about this repository: the same in other words, and others in nearly the same words.

Each intent is a small sentence about one thing. Two intents differ in one word: the verb, the thing, the question, a
negation, the order of two things, a number or a name. The phrasing changes all other words.
"""

import random
from dataclasses import dataclass

_THINGS = (
    ("secret", "run"), ("lease", "case"), ("vector", "profile"), ("turn", "session"), ("reward", "decision"),
    ("key", "user"), ("limit", "agent"), ("policy", "bank"), ("version", "procedure"), ("receipt", "purge"),
)  # fmt: skip
_VERBS = (
    ("store", "stored", "storing"), ("seal", "sealed", "sealing"), ("check", "checked", "checking"),
    ("prune", "pruned", "pruning"), ("count", "counted", "counting"), ("renew", "renewed", "renewing"),
)  # fmt: skip
_POLITE = ("", "please tell me ", "can you explain ", "I want to know ", "Could you please tell me ")
_PAIRS = (("run", "case"), ("query", "vector"), ("turn", "fact"), ("script", "version"))


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its intent, which is equal for questions with the same answer."""

    intent: str
    text: str


@dataclass(frozen=True, slots=True)
class Topic:
    """The subjects of one run's questions: few, so that most questions are near one another."""

    things: tuple[tuple[str, str], ...]
    verbs: tuple[tuple[str, str, str], ...]

    @classmethod
    def drawn(cls, rng: random.Random) -> "Topic":
        """Returns a topic."""
        return cls(tuple(rng.sample(_THINGS, 2)), tuple(rng.sample(_VERBS, 2)))


def question(rng: random.Random, topic: Topic) -> Question:
    """Returns a question about the topic, phrased in one of many ways."""
    kind = rng.choice(("asked", "asked", "asked", "named", "turned", "numbered", "whether"))
    polite = rng.choice(_POLITE)
    if kind == "turned":
        one, other = rng.choice(_PAIRS)
        one, other = (one, other) if rng.random() < 0.5 else (other, one)  # noqa: PLR2004 - either way
        verb = rng.choice((f"is {_a(one)} turned into {_a(other)}", f"are {one}s turned into {other}s"))
        return Question(f"turned {one} {other}", _put(rng, f"{polite}how {verb}"))
    if kind == "numbered":
        number, thing = rng.choice((1, 2, 3)), rng.choice(("migration", "decision", "issue"))
        text = rng.choice((f"what does {thing} {number} say", f"what {thing} {number} says", f"{thing} {number} says"))
        return Question(f"numbered {thing} {number}", _put(rng, text))
    thing, whole = rng.choice(topic.things)
    plain, done, doing = rng.choice(topic.verbs)
    if kind == "named":
        name = f"{plain}_{rng.choice((thing, whole))}"
        asks = rng.choice(("where", "why"))
        used = rng.choice(("is {} called", "'s {} called", "{} is called")).format(name)
        return Question(f"named {asks} {name}", _put(rng, f"{asks}{'' if used.startswith(chr(39)) else ' '}{used}"))
    if kind == "whether":
        negated = rng.random() < 0.5  # noqa: PLR2004 - half of them
        forms = (f"is {_a(thing)} not {done}", f"isn't {_a(thing)} {done}") if negated else (f"is {_a(thing)} {done}",)
        return Question(f"whether {thing} {done} {negated}", _put(rng, f"{polite}why {rng.choice(forms)}"))
    asks = rng.choice(("how", "where", "when", "why"))
    ways = (
        f"{asks} is the {thing} of a {whole} {done}",
        f"{asks} are the {thing}s of {_a(whole)} {done}",
        f"{asks} {_a(whole)}'s {thing} is {done}",
        f"{asks} does it {plain} the {thing} of {_a(whole)}",
        f"{asks} are we {doing} {thing}s of the {whole}",
    )
    return Question(f"asked {asks} {thing} {whole} {plain}", _put(rng, polite + rng.choice(ways)))


def _a(thing: str) -> str:
    return f"{'an' if thing[0] in 'aeiou' else 'a'} {thing}"


def _put(rng: random.Random, text: str) -> str:
    text = text.capitalize() if rng.random() < 0.4 and "_" not in text else text  # noqa: PLR2004 - some
    return text + rng.choice(("", "", "?", " ?", "."))
