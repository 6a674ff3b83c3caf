"""Texts as they are compared, whatever their case and white space, and as they are cut."""


def folded(text: str) -> str:
    """Returns the text in folded case, with single spaces between its words."""
    return " ".join(text.casefold().split())


def shortened(text: str, longest: int) -> str:
    """Returns the text, or its beginning with an ellipsis, in at most that many characters."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def without_example(text: str) -> str:
    """Returns a trigger without the concrete one that a hybrid procedure adds to it, for comparison: in folded case."""
    return folded(text.partition(" (for example: ")[0])
