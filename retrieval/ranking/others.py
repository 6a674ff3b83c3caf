"""Which candidates are told beside the slate: a run that failed near the task, and other ways in which it was done.

A place on the slate goes to what is expected to help most, so that four places may say one thing four times, and a
failure stands behind every success. Who acts on the text is helped by the fifth run as well, if it says something else.
Nothing here changes the slate, and an empty slate stands alone: it is to show what is done without memory.
"""

from collections.abc import Sequence

from policy.slate import Field, Slate

MOST_ALTERNATIVES = 3
WARNING_DEPTH = 8
"""How far down the order in which they were found a failure may stand: beyond, it is hardly about the same task."""


def others(field: Field, ordered: Sequence[int], slate: Slate, plans: Sequence[Sequence[str]]) -> list[int]:
    """Returns the candidates to be told after the slate: at most one failure, and then alternatives.

    Args:
        field: the candidates, in the order in which they were found.
        ordered: the allowed ones, the best first.
        slate: what is shown; no more alternatives are told than it has places.
        plans: of each candidate, in words or in tokens that are equal where the words are.
    """
    return [*_warning(field, ordered, slate), *_alternatives(field, ordered, slate, plans)]


def _warning(field: Field, ordered: Sequence[int], slate: Slate) -> list[int]:
    """Returns the first failure that was found, unless the slate has one."""
    if not slate or field.failed[list(slate)].any():
        return []
    return [index for index in sorted(ordered) if index < WARNING_DEPTH and field.failed[index]][:1]


def _alternatives(field: Field, ordered: Sequence[int], slate: Slate, plans: Sequence[Sequence[str]]) -> list[int]:
    """Returns the best successes whose plans nobody told; proven ones alone where the slate has any that are."""
    told = {tuple(plans[index]) for index in slate if not field.failed[index]} | {()}
    anybody = not any(field.is_proven(index) for index in slate)
    found: list[int] = []
    for index in ordered:
        if len(found) == min(MOST_ALTERNATIVES, len(slate)):
            break
        counts = not field.failed[index] and (anybody or field.is_proven(index))
        if counts and tuple(plans[index]) not in told:
            told.add(tuple(plans[index]))
            found.append(index)
    return found
