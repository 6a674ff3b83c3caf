"""Texts as they are compared: whatever their case and white space."""


def folded(text: str) -> str:
    """Returns the text in folded case, with single spaces between its words."""
    return " ".join(text.casefold().split())
