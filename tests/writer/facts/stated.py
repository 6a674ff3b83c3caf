"""The facts that a text states, without those that it ends."""

from datetime import date

from writer.facts.extract import FactDraft, read


def stated(text: str, day: date) -> list[FactDraft]:
    return [draft for draft in read(text, day) if not draft.ends]
