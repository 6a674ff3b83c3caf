"""The facts that a text states, without those that it ends."""

from datetime import date

from writer.facts.draft import FactDraft
from writer.facts.extract import read


def stated(text: str, day: date) -> list[FactDraft]:
    return [draft for draft in read(text, day) if not draft.ends]
