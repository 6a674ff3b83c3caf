"""Finds in the calls of a run what failed, and the later call that reached what the failed one was for.

Linear in the number of calls: each is looked at once, and held against at most MOST_OPEN failures of its tool; of what
was not put right so, the next MOST_AFTER calls are looked at once more.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Literal

from writer.analysis.argument_diff import Difference, differences, overlap, respelled
from writer.analysis.calls import Call, Evidence
from writer.analysis.causes import instructs
from writer.analysis.complaints import complaints
from writer.analysis.empty_output import is_empty
from writer.analysis.error_output import FEWEST_CHARS, MOST_KEYS, glimpse
from writer.analysis.state_changes import changes_state
from writer.analysis.statements import is_statement
from writer.nested import parts

FixKind = Literal[
    "same_args_retry", "args_changed", "args_changed_after_other_tool", "same_args_after_other_tool", "other_tool"
]
"""How the call that worked differs from those that failed before it."""


MOST_OPEN = 8
"""Failures of one tool that wait for their fix; of a tool that takes statements each may be for another goal."""
MOST_BETWEEN = 20
SAME_GOAL = 0.5
"""Least overlap of the words of two statements that are after the same thing."""

MOST_AFTER = 50
"""Calls after a failure among which another tool's is looked for that did the same."""

_BY = re.compile(r"_(?:by|with|via|using|from)_")
_WORD = re.compile(r"\w{3,}")
_VERBS = {"select", "insert", "update", "delete", "alter", "create", "drop", "grant", "truncate"}


@dataclass(frozen=True, slots=True)
class Failure:
    """One thing that failed, and how it came right; ``succeeded``, ``kind`` and what follows are empty if it never did.

    Attributes:
        tool: that failed; of the kind "other_tool" another one's call succeeded.
        failed: indices of the failing calls of the tool, rising.
        succeeded: index of the call that reached what they were for.
        between: names of what was called between the last failure and the success, each once, in order.
        message: what the last failing call answered, as it was; never to be quoted unsanitised.
    """

    tool: str
    failed: tuple[int, ...]
    evidence: Evidence
    message: str
    succeeded: int | None = None
    kind: FixKind | None = None
    differences: tuple[Difference, ...] = ()
    between: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class _Open:
    """Failing calls of one tool, after the same goal, that nothing has put right yet."""

    calls: list[Call]


@dataclass(slots=True)
class _Search:
    """What was found so far."""

    calls: Sequence[Call]
    recovered: list[Failure] = field(default_factory=list)
    lost: list[Failure] = field(default_factory=list)
    open: dict[str, list[_Open]] = field(default_factory=lambda: defaultdict(list))
    last_empty: dict[str, Call] = field(default_factory=dict)

    def take(self, call: Call) -> None:
        """Looks at the next call."""
        if call.failure is not None:
            self._fail(call)
        else:
            self._succeed(call)

    def _fail(self, call: Call) -> None:
        waiting = self.open[call.tool]
        same = next((each for each in reversed(waiting) if same_goal(each.calls[-1].given, call.given)), None)
        if same is not None:
            same.calls.append(call)
            return
        waiting.append(_Open([call]))
        if len(waiting) > MOST_OPEN:
            self.lost.append(_never(waiting.pop(0).calls))

    def _succeed(self, call: Call) -> None:
        waiting = self.open.get(call.tool)
        earlier = self.last_empty.pop(call.tool, None)
        if waiting:
            solved = [each for each in waiting if same_goal(each.calls[-1].given, call.given)]
            self.recovered += [self._fixed(each.calls, call) for each in solved]
            self.open[call.tool] = [each for each in waiting if each not in solved] if solved else waiting
        elif is_empty(call.output):
            self.last_empty[call.tool] = call
        elif earlier is not None and respelled(earlier.given, call.given):
            self.recovered.append(self._fixed([_as_failure(earlier, "empty_output")], call))

    def _fixed(self, failed: Sequence[Call], success: Call) -> Failure:
        return _fixed(self.calls, failed, success)

    def end(self) -> None:
        """Counts as lost what is still waiting."""
        self.lost += [_never(each.calls) for waiting in self.open.values() for each in waiting]
        self.lost.sort(key=lambda sequence: sequence.failed)

    def turn_to_other_tools(self) -> None:
        """Counts as put right what another tool then did, of a run that reached its goal."""
        pairs = [(failure, _done_by_another_tool(self.calls, failure)) for failure in self.lost]
        self.lost = [failure for failure, done in pairs if done is None]
        self.recovered = sorted([*self.recovered, *(done for _, done in pairs if done)], key=_success)


def _success(failure: Failure) -> tuple[int | None, tuple[int, ...]]:
    return failure.succeeded, failure.failed


def _as_failure(call: Call, evidence: Evidence) -> Call:
    message = "no results" if evidence == "empty_output" else "the user said that it was wrong"
    return Call(call.index, call.tool, call.given, call.output, message, evidence)


@dataclass(frozen=True, slots=True)
class Found:
    """The failures of a run: those that came right, in the order of their success, and those that never did."""

    calls: Sequence[Call]
    recovered: tuple[Failure, ...] = ()
    lost: tuple[Failure, ...] = ()


def find(calls: Sequence[Call], turns: Iterable[object], *, succeeded: bool) -> Found:
    """Returns the failures among the calls, and in what the user complained about.

    Args:
        calls: of the run, see ``calls_in``.
        turns: of the conversation.
        succeeded: whether the run as a whole did.
    """
    search = _Search(calls)
    for call in calls:
        search.take(call)
    search.end()
    if succeeded:
        search.turn_to_other_tools()
    if not search.recovered and succeeded and (said := complaints(turns)):
        search.recovered += _corrected(calls, said)
    return Found(calls, tuple(search.recovered), tuple(search.lost))


def same_goal(failed: object, later: object) -> bool:
    """Returns whether two calls of a tool may be after the same thing.

    They are, unless they run statements that have little in common: a tool that runs any SQL has as many goals.
    """
    before, after = statement_of(failed), statement_of(later)
    if before is None or after is None:
        return True
    verbs = {text.split(None, 1)[0].casefold() for text in (before, after)}
    if len(verbs) > 1 and verbs <= _VERBS:
        return False
    return overlap(before, after) >= SAME_GOAL


def statement_of(given: object) -> str | None:
    """Returns the SQL or the command line that a call is about, if it is about one."""
    values = islice(given.values(), MOST_OPEN) if isinstance(given, Mapping) else (given,)
    return next((value for value in values if isinstance(value, str) and is_statement(value)), None)


def _never(failed: Sequence[Call]) -> Failure:
    return Failure(failed[-1].tool, tuple(call.index for call in failed), failed[-1].evidence, failed[-1].failure or "")


def _fixed(calls: Sequence[Call], failed: Sequence[Call], success: Call) -> Failure:
    last = failed[-1]
    between = _between(calls, last, success)
    same = last.given == success.given
    return Failure(
        tool=success.tool,
        failed=tuple(call.index for call in failed),
        evidence=last.evidence,
        message=last.failure or "",
        succeeded=success.index,
        kind=_kind(same=same, other=bool(between)),
        differences=() if same else differences(last.given, success.given),
        between=between,
    )


def _between(calls: Sequence[Call], last: Call, success: Call) -> tuple[str, ...]:
    inside = calls[last.index + 1 : min(success.index, last.index + 1 + MOST_BETWEEN)]
    return tuple(dict.fromkeys(call.tool for call in inside))


def _kind(*, same: bool, other: bool) -> FixKind:
    if same:
        return "same_args_after_other_tool" if other else "same_args_retry"
    return "args_changed_after_other_tool" if other else "args_changed"


def _done_by_another_tool(calls: Sequence[Call], failure: Failure) -> Failure | None:
    """Returns the failure as put right by the first later call of another tool that did the same; None without one.

    Never by a tool that an output told the agent to call.
    """
    last = calls[failure.failed[-1]]
    ordered = [text for text in [glimpse(last.output)] if instructs(text)]
    for call in calls[last.index + 1 : last.index + 1 + MOST_AFTER]:
        if _does_the_same(last, call) and not any(call.tool in text for text in ordered):
            between = _between(calls, last, call)
            return replace(failure, succeeded=call.index, kind="other_tool", between=between)
        ordered += [text for text in [glimpse(call.output)] if instructs(text)]
    return None


def _does_the_same(failed: Call, later: Call) -> bool:
    """Returns whether a call of another tool answered, and was after the same: by its name, or with all the values."""
    if later.tool in {"", failed.tool} or later.failed or is_empty(later.output):
        return False
    if changes_state(later.tool) != changes_state(failed.tool):
        return False
    values = _values(failed.given)
    if any(isinstance(value, str) and len(value) >= FEWEST_CHARS for value in values) and values <= _values(
        later.given
    ):
        return True
    return _BY.split(failed.tool, maxsplit=1)[0] == _BY.split(later.tool, maxsplit=1)[0]


def _values(given: object) -> set[str | float]:
    """Returns the texts and numbers in a call's arguments, the first MOST_KEYS of them."""
    plain = (part for part in parts(given, widest=MOST_KEYS) if isinstance(part, str | int | float))
    return set(islice(plain, MOST_KEYS))


def _corrected(calls: Sequence[Call], said: Sequence[str]) -> list[Failure]:
    """Returns the correction that a complaint led to: a repeated call with other arguments, if there is one.

    The last one in which a word changed that the user said; else the last one of all. Turns and calls have no common
    clock, so this is only said where the run succeeded and nothing else failed.
    """
    latest: dict[str, Call] = {}
    pairs: list[tuple[Call, Call]] = []
    for call in calls:
        before = latest.get(call.tool)
        if before is not None and before.given != call.given and same_goal(before.given, call.given):
            pairs.append((before, call))
        latest[call.tool] = call
    disputed = _words("\n".join(said))
    named = [(before, after) for before, after in pairs if _changed_words(before, after) & disputed] or pairs
    changing = [pair for pair in named if changes_state(pair[0].tool)] or named
    return [_fixed(calls, [_as_failure(before, "complaint")], after) for before, after in changing[-1:]]


def _changed_words(before: Call, after: Call) -> set[str]:
    return _words(glimpse(before.given)) ^ _words(glimpse(after.given))


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}
