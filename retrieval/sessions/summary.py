"""Summarises turns of a session that no longer fit a context: requests, decisions and names, commands and values.

Rules choose the sentences, and each is quoted as a whole, so that no value changes. The newest are taken first until
the budget is spent; the session's first request is taken before all others if it fits. If a language model summarised
the turns up to some number, its lines take the place of the rules' lines for those turns.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from retrieval.patterns import patterns
from retrieval.sessions.messages import SessionTurn
from retrieval.tables.kinds import SummaryChoice
from retrieval.text import shortened

ItemKind = Literal["asked", "decided", "named", "command", "value"]
LONGEST = 400
"""Largest number of characters of an item: a longer sentence is left out, because a part of it may mislead."""

_FORMS = patterns("retrieval.sessions", "summary")


@dataclass(frozen=True, slots=True)
class Item:
    """One item of a summary: a sentence, command or call quoted from a turn, or a language model's sentence about it.

    Attributes:
        kind: kind of the item, such as a request or a decision.
        by: author of the item: the rules or a language model.
    """

    number: int
    kind: ItemKind
    role: str
    text: str
    by: SummaryChoice = "rules"

    @property
    def line(self) -> str:
        """The item as one line, with its kind, turn and author."""
        by = ", in a model's words" if self.by == "llm" else ""
        return f"{self.kind} (turn {self.number}, {self.role}{by}): {' '.join(self.text.split())}"


def items_of(turn: SessionTurn) -> Iterator[Item]:
    """Yields the sentences, commands and calls of a turn that a summary may quote, each text once."""
    seen: set[str] = set()
    for kind, found in _found(turn):
        text = found.strip()
        if text and len(text) <= LONGEST and text not in seen:
            seen.add(text)
            yield Item(turn.number, kind, turn.role, text)


def _found(turn: SessionTurn) -> Iterator[tuple[ItemKind, str]]:
    said = turn.said
    for block in _FORMS["fenced"].finditer(said):
        for line in block[1].splitlines():
            yield "command", line
    said = _FORMS["fenced"].sub("\n", said)
    for typed in _FORMS["typed"].finditer(said):
        yield "command", typed[1] or typed[2]
    for call in turn.calls:
        yield "command", call
    for sentence in map(str.strip, _FORMS["sentence"].split(said)):
        # a longer one is not quoted, and may be a text of megabytes
        if len(sentence) <= LONGEST and (kind := _kind_of(sentence, is_the_users=turn.is_the_users)):
            yield kind, sentence


def _kind_of(sentence: str, *, is_the_users: bool) -> ItemKind | None:
    """Returns the kind of a sentence; None: the summary leaves the sentence out."""
    if is_the_users and (sentence.endswith("?") or _FORMS["asked"].search(sentence)):
        return "asked"
    if _FORMS["named"].search(sentence):
        return "named"
    if _FORMS["decided"].search(sentence) and not sentence.endswith("?"):
        return "decided"
    return "value" if _FORMS["value"].search(sentence) else None


@dataclass(frozen=True, slots=True)
class Written:
    """A language model's summary of a session's turns up to the number ``last_turn``, in the order of the turns."""

    last_turn: int = 0
    items: Sequence[Item] = ()


def chosen(
    newest_first: Iterable[SessionTurn],
    first: SessionTurn | None,
    budget: int,
    cost: Callable[[str], int],
    written: Written = Written(),
) -> list[Item]:
    """Returns the items of a summary that fit the budget, in the order of the conversation.

    The request of ``first``, the session's first turn, is taken before all others; None: it is quoted as a whole
    elsewhere. Lines of ``written``, a language model's summary, come first, and the rules summarise only later turns.
    """
    items: list[Item] = []
    if first is not None:
        opening = Item(first.number, "asked", first.role, shortened(first.said.strip(), LONGEST))
        items = [opening] if first.said.strip() and cost(opening.line) <= budget else []
    left = budget - sum(cost(item.line) for item in items)
    by_model, left = _fitting(list(reversed(written.items)), left, cost)
    items += by_model
    for turn in newest_first:
        if turn.number <= written.last_turn or (first is not None and turn.number == first.number):
            continue
        fitting, left = _fitting(list(items_of(turn)), left, cost)
        items += fitting
        if left <= 0:
            break
    return sorted(items, key=lambda item: item.number)


def _fitting(items: list[Item], left: int, cost: Callable[[str], int]) -> tuple[list[Item], int]:
    """Returns the items up to the first that does not fit, and the budget left, which is below 0 if one did not fit."""
    fitting = []
    for item in items:
        left -= cost(item.line)
        if left < 0:
            break
        fitting.append(item)
    return fitting, left
