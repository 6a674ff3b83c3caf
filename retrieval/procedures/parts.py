"""Splits a task that asks for several things into its parts, by the words and signs between them."""

import re

MOST_PARTS = 4
"""Largest number of parts of a task; a task with more is a text, which is not split."""
LEAST_WORDS = 2
"""Least number of words of a part of a task."""
_WORDS = "and|then|after that|afterwards|as well as|und|dann|danach|sowie|et|puis|ensuite|y|luego|después"
_BETWEEN = re.compile(rf"[;\n]+|[.!?]\s+|,\s+|,?\s+(?:{_WORDS})\s+", re.IGNORECASE)
_NUMBER = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")


def parts_of(task: str) -> list[str]:
    """Returns the parts of a task in their order; empty for a task of one part or of more than MOST_PARTS parts."""
    lines = "\n".join(" ".join(_NUMBER.sub("", line).split()) for line in task.split("\n") if line.strip())
    parts = [part.strip() for part in _BETWEEN.split(lines)]
    parts = [part for part in parts if len(part.split()) >= LEAST_WORDS]
    return parts if 1 < len(parts) <= MOST_PARTS else []
