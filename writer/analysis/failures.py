"""Finds the failures among the calls of a run, and for each the later call that reached the failed call's goal.

The search is linear in the number of calls: each call is compared with at most MOST_OPEN failures of its tool. For a
failure without a fix, the next MOST_AFTER calls are searched once more.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress, islice
from operator import not_
from typing import Literal

from retrieval.patterns import patterns
from writer.analysis.argument_diff import ArgumentChange, differences, respelled
from writer.analysis.call_goals import same_goal, words_of
from writer.analysis.calls import Call, Evidence
from writer.analysis.causes import instructs
from writer.analysis.empty_output import is_empty
from writer.analysis.error_output import (
    FEWEST_CHARS,
    MOST_KEYS,
    SHORT_CHARS,
    beginning,
    glimpse,
    is_silent,
    says_not_yet,
)
from writer.analysis.state_changes import changes_state
from writer.nested import parts

FixKind = Literal[
    "same_args_retry", "args_changed", "args_changed_after_other_tool", "same_args_after_other_tool", "other_tool"
]
"""Kind of a fix: the difference between the call that succeeded and the failed calls before it."""


MOST_OPEN = 8
"""Maximum failures of one tool that wait for a fix; there are several, because calls of a tool may differ in goal."""
MOST_BETWEEN = 20

MOST_AFTER = 50
"""Number of calls after a failure that are searched for another tool that reached the failed call's goal."""
TASK_CHARS = 2_000
MOST_TURNS = 2_000
MOST_PARTS = 4

_FORMS = patterns("writer.analysis", "complaints", "intended")
_BY = re.compile(r"_(?:by|with|via|using|from)_")
_WORD = re.compile(r"\w{3,}")


@dataclass(frozen=True, slots=True)
class Failure:
    """Failed calls of one tool with one goal, and the call that fixed them.

    Attributes:
        tool: the tool that failed; in the kind "other_tool" a call of another tool succeeded.
        failed: indices of the failed calls, rising.
        evidence: the part of the call that shows the failure: its status, its output, or a complaint of the user.
        message: the last failed call's error, verbatim; quote it only after ``causes.quoted``.
        succeeded: index of the call that reached the goal; None if no call did.
        kind: difference between the call that succeeded and the failed calls; None: no call succeeded.
        differences: changes of the arguments; empty if there are none or no call succeeded.
        between: names of the tools called between the last failure and the success, each once, in order.
    """

    tool: str
    failed: tuple[int, ...]
    evidence: Evidence
    message: str
    succeeded: int | None = None
    kind: FixKind | None = None
    differences: tuple[ArgumentChange, ...] = ()
    between: tuple[str, ...] = ()


@dataclass(slots=True)
class _Search:
    """The state of one pass over the calls of a run."""

    calls: Sequence[Call]
    concrete: bool = False
    task_words: Collection[str] = ()
    recovered: list[Failure] = field(default_factory=list)
    lost: list[Failure] = field(default_factory=list)
    open: dict[str, list[list[Call]]] = field(default_factory=lambda: defaultdict(list))
    """Failed calls without a fix so far, by their tool; those of one list have the same goal."""
    last_empty: dict[str, Call] = field(default_factory=dict)

    def take(self, call: Call) -> None:
        """Looks at the next call: adds it to the open failures, or closes those whose goal it reached."""
        waiting = self.open[call.tool]
        if call.failure is not None:
            same = next((failed for failed in reversed(waiting) if same_goal(failed[-1], call, self.task_words)), None)
            if same is not None:
                same.append(call)
                return
            waiting.append([*self._taken_back(call), call])
            if len(waiting) > MOST_OPEN:
                self.lost.append(_never(waiting.pop(0)))
            return
        if call.line is None:
            reached_goal = not says_not_yet(call.output)
        else:  # a command without output succeeded if its tool has shown an error, for it would show another
            reached_goal = bool(waiting) or not is_silent(call.output)
        if not reached_goal:
            return
        earlier = self.last_empty.pop(call.tool, None)
        if waiting:
            reached = [same_goal(failed[-1], call, self.task_words) for failed in waiting]
            self.recovered += [self.fixed(failed, call) for failed in compress(waiting, reached)]
            self.open[call.tool] = [*compress(waiting, map(not_, reached))]
        elif is_empty(call.output):
            self.last_empty[call.tool] = call
        elif earlier is not None and respelled(earlier.arguments, call.arguments):
            empty = replace(earlier, failure="no results", evidence="empty_output")
            self.recovered.append(self.fixed([empty], call))

    def _taken_back(self, call: Call) -> list[Call]:
        """Removes the fix that changed the arguments of a call which now fails again, and returns the calls before it.

        The same call with the same error shows that the fix reached another goal.
        """
        for place, failure in enumerate(reversed(self.recovered[-MOST_OPEN:]), start=1):
            last = self.calls[failure.failed[-1]]
            if failure.differences and _made(last) == _made(call):
                del self.recovered[-place]
                return [self.calls[at] for at in failure.failed]
        return []

    def fixed(self, failed: Sequence[Call], success: Call) -> Failure:
        """Returns the failure of these calls, with the call that reached their goal as its fix."""
        last = failed[-1]
        between = _between(self.calls, last, success)
        changes = differences(last.arguments, success.arguments, concrete=self.concrete)
        same = last.arguments == success.arguments and not changes  # to Python, True equals 1
        kind: FixKind
        if same:
            kind = "same_args_after_other_tool" if between else "same_args_retry"
        else:
            kind = "args_changed_after_other_tool" if between else "args_changed"
        indices = tuple(call.index for call in failed)
        return Failure(success.tool, indices, last.evidence, last.failure or "", success.index, kind, changes, between)

    def corrected(self, texts: Sequence[str]) -> list[Failure]:
        """Returns the correction that followed complaints: a repeated call with other arguments; empty: there is none.

        The last such call that changed a word of the complaints is preferred; else it is the last one. Turns and calls
        have no common clock, so `find` uses this only where the run succeeded and no other failure was recovered.
        """
        latest: dict[str, Call] = {}
        pairs: list[tuple[Call, Call]] = []
        for call in self.calls:
            before = latest.get(call.tool)
            if before is not None and before.arguments != call.arguments and same_goal(before, call, self.task_words):
                pairs.append((before, call))
            latest[call.tool] = call
        disputed = _words("\n".join(texts))
        named = [
            (before, after)
            for before, after in pairs
            if (_words(glimpse(before.arguments)) ^ _words(glimpse(after.arguments))) & disputed
        ] or pairs
        changing = [pair for pair in named if changes_state(pair[0].tool)] or named
        what = "the user said that it was wrong"
        return [
            self.fixed([replace(before, failure=what, evidence="complaint")], after) for before, after in changing[-1:]
        ]


def _made(call: Call) -> tuple[object, ...]:
    return call.tool, call.arguments, call.failure


@dataclass(frozen=True, slots=True)
class RunFailures:
    """The failures of a run.

    Attributes:
        recovered: failures with a fix, in the order of their success.
        lost: failures without a fix.
        intended: failures that the run wanted, as in a test of an error; they give no lessons.
        concrete: true if harmless words of command lines are quoted.
    """

    calls: Sequence[Call]
    recovered: tuple[Failure, ...] = ()
    lost: tuple[Failure, ...] = ()
    intended: tuple[Failure, ...] = ()
    concrete: bool = False


def find(
    calls: Sequence[Call], turns: Iterable[object], *, succeeded: bool, task: str = "", concrete: bool = False
) -> RunFailures:
    """Returns the failures among the calls of a run, complaints of the user included.

    The user may complain in the turns, and the task may have asked for a failure. ``concrete``: quote harmless words of
    command lines, in place of placeholders.
    """
    search = _Search(calls, concrete, words_of(task))
    for call in calls:
        search.take(call)
    lost = [*search.lost, *(_never(failed) for waiting in search.open.values() for failed in waiting)]
    lost.sort(key=lambda failure: failure.failed)
    if not succeeded:
        return RunFailures(calls, tuple(search.recovered), tuple(lost), concrete=concrete)
    pairs = [(failure, _done_by_another_tool(calls, failure)) for failure in lost]
    recovered = [*search.recovered, *(done for _, done in pairs if done)]
    recovered.sort(key=lambda failure: (failure.succeeded, failure.failed))
    if not recovered and (texts := complaints(turns)):
        recovered = search.corrected(texts)
    lost = [failure for failure, done in pairs if done is None]
    wanted = _FORMS["asks"].search(beginning(task, TASK_CHARS))
    asked = wanted is not None and _FORMS["not"].search(wanted.group()) is None
    meant = [asked or _came_to_the_same([calls[at] for at in each.failed]) for each in lost]
    intended, rest = tuple(compress(lost, meant)), tuple(compress(lost, map(not_, meant)))
    return RunFailures(calls, tuple(recovered), rest, intended, concrete=concrete)


def complaints(turns: Iterable[object]) -> list[str]:
    """Returns the beginnings of the user's turns that complain about a result; the first one, the task, is not read.

    That a thing of the user's does not work ("my TV is broken") is no complaint about a result.
    """
    by_user = (turn for turn in islice(turns, MOST_TURNS) if isinstance(turn, Mapping) and turn.get("role") == "user")
    texts: list[str] = []
    for turn in islice(by_user, 1, None):
        content = turn.get("content")
        contents = content if isinstance(content, list) else [content]
        values = (part.get("text") if isinstance(part, Mapping) else part for part in contents[:MOST_PARTS])
        texts += [beginning(text, SHORT_CHARS) for text in values if isinstance(text, str)]
    about_results = ((text, _FORMS["world"].sub(" ", text)) for text in texts)
    forms = _FORMS["complaint"], _FORMS["quoted_wrong"]
    complaints = [text for text, said in about_results if any(form.search(said) for form in forms)]
    return [text for text in complaints if not _FORMS["denied"].search(text)]


def _came_to_the_same(failed: Sequence[Call]) -> bool:
    """Returns whether a call was repeated unchanged, with other calls between, and failed with the same error."""
    first, last = failed[0], failed[-1]
    return (
        last.index - first.index >= len(failed) > 1
        and first.arguments == last.arguments
        and first.failure == last.failure
    )


def _never(failed: Sequence[Call]) -> Failure:
    return Failure(failed[-1].tool, tuple(call.index for call in failed), failed[-1].evidence, failed[-1].failure or "")


def _between(calls: Sequence[Call], last: Call, success: Call) -> tuple[str, ...]:
    inside = calls[last.index + 1 : min(success.index, last.index + 1 + MOST_BETWEEN)]
    return tuple(dict.fromkeys(call.tool for call in inside))


def _done_by_another_tool(calls: Sequence[Call], failure: Failure) -> Failure | None:
    """Returns the failure with its fix, the first later call of another tool that did the same; None: there is none.

    A tool that an output told the agent to call never counts as a fix, and neither does a call that had worked before
    the failure: it is made again with what did put the failure right.
    """
    last = calls[failure.failed[-1]]
    worked = [each for each in calls[max(last.index - MOST_AFTER, 0) : last.index] if not each.failed]
    for call in calls[last.index + 1 : last.index + 1 + MOST_AFTER]:
        made = call.tool, call.arguments
        if not _does_the_same(last, call) or any(made == (each.tool, each.arguments) for each in worked):
            continue
        texts = (glimpse(each.output) for each in calls[last.index : call.index])
        if not any(call.tool in text and instructs(text) for text in texts):
            return replace(failure, succeeded=call.index, kind="other_tool", between=_between(calls, last, call))
    return None


def _does_the_same(failed: Call, later: Call) -> bool:
    """Returns whether a call of another tool succeeded with all the values of the failed one, or has a like name."""
    if later.tool in {"", failed.tool} or later.failed or is_empty(later.output):
        return False
    if changes_state(later.tool) != changes_state(failed.tool):
        return False
    values = _values(failed.arguments)
    tell_apart = any(isinstance(value, str) and len(value) >= FEWEST_CHARS for value in values)
    if tell_apart and values <= _values(later.arguments):
        return True
    return _BY.split(failed.tool, maxsplit=1)[0] == _BY.split(later.tool, maxsplit=1)[0]


def _values(arguments: object) -> set[str | float]:
    """Returns the first MOST_KEYS texts and numbers in the arguments of a call."""
    plain = (part for part in parts(arguments, widest=MOST_KEYS) if isinstance(part, str | int | float))
    return set(islice(plain, MOST_KEYS))


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}
