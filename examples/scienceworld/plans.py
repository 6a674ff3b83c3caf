"""Plans in words: the essential actions of a run, and a remembered plan in the words of another task."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from app.demo.memory import RememberedCase

AVOID = "do not: "
_VERBS = ("focus on", "pick up", "teleport to", "move", "use thermometer")
MOST = 0.6
"""Least share of a name's words by which it stands for the thing."""
_DULL_WORDS = """
a an and are around be by can containing done do first focus for from has if in into inventory is it its located move
next nothing of on one or pick place room task teleport that the them then there thing this to up when which will with
you your
"""
_DULL = frozenset(_DULL_WORDS.split())


@dataclass(frozen=True, slots=True)
class Done:
    """One action that was taken, with its place and its gain in score."""

    action: str
    place: str
    gain: int


def essential(taken: Sequence[Done]) -> list[str]:
    """Returns the actions that gained score, those before them on the same things, and the way to them."""
    kept: list[Done] = []
    matter: set[str] = set()
    for done in reversed(taken):
        if done.action.startswith("teleport"):
            continue
        words = content(done.action)
        if done.gain > 0 or words & matter:
            kept.append(done)
            matter |= words
    lines: list[str] = []
    place = ""
    for done in reversed(kept):
        if done.place != place:
            lines.append(f"teleport to {done.place}")
            place = done.place
        lines.append(done.action)
    return lines


def adapt(case: RememberedCase, text: str) -> tuple[int, list[str]] | None:
    """Returns the number of differences between the case's task and the text, and its plan in the text's words.

    Returns None if the plan does not fit: the first sentences, which name the goal, differ in a word that the plan does
    not contain, so that no replacement can make it right.
    """
    if case.outcome != "success" or not case.plan:
        return None
    plan = [line.lower() for line in case.plan]
    plan_words = " ".join(plan)
    wanted = _swaps(case.task.partition(".")[0], text.partition(".")[0])
    if any(not word or not re.search(rf"\b{re.escape(word)}\b", plan_words) for word in wanted):
        return None
    swaps = {old: new for old, new in _swaps(case.task, text).items() if old and new}
    return len(swaps), [_swapped(line, swaps) for line in plan]


def _swaps(old: str, new: str) -> dict[str, str]:
    """Returns the new text's words by the old text's words that they replace; single letters are no words."""
    before, after = (re.findall(r"[\w']{2,}", each.lower()) for each in (old, new))
    codes = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return {" ".join(before[i:j]): " ".join(after[p:q]) for kind, i, j, p, q in codes if kind != "equal"}


def _swapped(line: str, swaps: dict[str, str]) -> str:
    if not swaps:
        return line
    pattern = "|".join(rf"\b{re.escape(word)}\b" for word in sorted(swaps, key=len, reverse=True))
    return re.sub(pattern, lambda match: swaps[match[0]], line)


def closest(line: str, valid: Sequence[str]) -> str | None:
    """Returns the valid action that is the line, or the most similar with the same verb and most of its words."""
    if line in valid:
        return line
    same = [action for action in valid if verb_of(action) == verb_of(line)]
    best = max(same, key=lambda action: _likeness(line, action), default=None)
    return best if best is not None and _likeness(line, best) > MOST else None


def _likeness(one: str, other: str) -> float:
    """Returns the share of common words, in the moved thing or in its goal, whichever is less."""
    parts = zip(one.partition(" to ")[::2], other.partition(" to ")[::2], strict=True)
    return min(_overlap(content(mine), content(theirs)) for mine, theirs in parts)


def _overlap(one: set[str], other: set[str]) -> float:
    return len(one & other) / len(one | other) if one | other else 1.0


def verb_of(action: str) -> str | None:
    """Returns the verb that the action begins with."""
    return next((verb for verb in _VERBS if action.startswith(verb)), None)


def named(target: str) -> set[str]:
    """Returns the words of the thing to focus on; an empty set if it is described and not named."""
    return set() if " with " in target else content(target)


def content(text: str) -> set[str]:
    """Returns the content words of the text."""
    return {word for word in re.findall(r"[a-z]+", text.lower()) if word not in _DULL}
