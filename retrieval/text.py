"""Texts as they are compared, whatever their case and white space, and as they are cut."""


def folded(text: str) -> str:
    """Returns the text in folded case, with single spaces between its words."""
    return " ".join(text.casefold().split())


def shortened(text: str, longest: int) -> str:
    """Returns the text, or its beginning with an ellipsis, in at most that many characters."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
