"""Finds in the calls of a run what failed, and the later call that reached what the failed one was for.

Linear in the number of calls: each is looked at once, and held against at most MOST_OPEN failures of its tool.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Literal

from writer.analysis import command_goals
from writer.analysis.argument_diff import Difference, differences, overlap, respelled
from writer.analysis.calls import Call, Evidence
from writer.analysis.complaints import complaints
from writer.analysis.error_output import is_empty, is_silent, says_not_yet
from writer.analysis.state_changes import changes_state
from writer.analysis.statements import command_in, is_statement

FixKind = Literal["same_args_retry", "args_changed", "args_changed_after_other_tool", "same_args_after_other_tool"]
"""How the call that worked differs from those that failed before it."""


MOST_OPEN = 8
"""Failures of one tool that wait for their fix; of a tool that takes statements each may be for another goal."""
MOST_BETWEEN = 20
SAME_GOAL = 0.5
"""Least overlap of the words of two statements that are after the same thing."""

_VERBS = {"select", "insert", "update", "delete", "alter", "create", "drop", "grant", "truncate"}


@dataclass(frozen=True, slots=True)
class Failure:
    """One thing that failed, and how it came right; ``succeeded``, ``kind`` and what follows are empty if it never did.

    Attributes:
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
    with_status: frozenset[str] = frozenset()
    """Tools whose status says when they fail, so that one of "ok" says that they did not."""
    concrete: bool = False
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
        if not self._says_it_worked(call):
            return
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

    def _says_it_worked(self, call: Call) -> bool:
        """Returns whether a call that did not fail reached its goal, as its status or its own output says."""
        if call.line is None:
            return not says_not_yet(call.output)
        return call.tool in self.with_status or not is_silent(call.output)

    def _fixed(self, failed: Sequence[Call], success: Call) -> Failure:
        return _fixed(self.calls, failed, success, concrete=self.concrete)

    def end(self) -> None:
        """Counts as lost what is still waiting."""
        self.lost += [_never(each.calls) for waiting in self.open.values() for each in waiting]
        self.lost.sort(key=lambda sequence: sequence.failed)


def _as_failure(call: Call, evidence: Evidence) -> Call:
    message = "no results" if evidence == "empty_output" else "the user said that it was wrong"
    return Call(call.index, call.tool, call.given, call.output, message, evidence)


@dataclass(frozen=True, slots=True)
class Found:
    """The failures of a run: those that came right, in the order of their success, and those that never did."""

    calls: Sequence[Call]
    recovered: tuple[Failure, ...] = ()
    lost: tuple[Failure, ...] = ()
    concrete: bool = False


def find(calls: Sequence[Call], turns: Iterable[object], *, succeeded: bool, concrete: bool = False) -> Found:
    """Returns the failures among the calls, and in what the user complained about.

    Args:
        calls: of the run, see ``calls_in``.
        turns: of the conversation.
        succeeded: whether the run as a whole did.
        concrete: whether what is safe of a command line is told as it was.
    """
    with_status = frozenset(call.tool for call in calls if call.failed and call.evidence == "status")
    search = _Search(calls, with_status, concrete)
    for call in calls:
        search.take(call)
    search.end()
    if not search.recovered and succeeded and complaints(turns):
        search.recovered += _corrected(calls, concrete=concrete)
    return Found(calls, tuple(search.recovered), tuple(search.lost), concrete=concrete)


def same_goal(failed: object, later: object) -> bool:
    """Returns whether two calls of a tool may be after the same thing.

    They are, unless they run statements that have little in common: a tool that runs any SQL has as many goals, and
    one that runs any command more.
    """
    old, new = command_in(failed), command_in(later)
    if old is not None and new is not None:
        return command_goals.same_goal(old, new)
    before, after = statement_of(failed), statement_of(later)
    if before is None or after is None:
        return True
    verbs = {text.split(None, 1)[0].casefold() for text in (before, after)}
    if len(verbs) > 1 and verbs <= _VERBS:
        return False
    return overlap(before, after) >= SAME_GOAL


def statement_of(given: object) -> str | None:
    """Returns the SQL or the command line that a call is about, if it is about one."""
    values = islice(given.items(), MOST_OPEN) if isinstance(given, Mapping) else (("", given),)
    return next((value for key, value in values if isinstance(value, str) and is_statement(value, key)), None)


def _never(failed: Sequence[Call]) -> Failure:
    return Failure(failed[-1].tool, tuple(call.index for call in failed), failed[-1].evidence, failed[-1].failure or "")


def _fixed(calls: Sequence[Call], failed: Sequence[Call], success: Call, *, concrete: bool) -> Failure:
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
        differences=() if same else differences(last.given, success.given, concrete=concrete),
        between=between,
    )


def _between(calls: Sequence[Call], last: Call, success: Call) -> tuple[str, ...]:
    inside = calls[last.index + 1 : min(success.index, last.index + 1 + MOST_BETWEEN)]
    return tuple(dict.fromkeys(call.tool for call in inside))


def _kind(*, same: bool, other: bool) -> FixKind:
    if same:
        return "same_args_after_other_tool" if other else "same_args_retry"
    return "args_changed_after_other_tool" if other else "args_changed"


def _corrected(calls: Sequence[Call], *, concrete: bool) -> list[Failure]:
    """Returns the correction that a complaint led to: the last repeated call with other arguments, if there is one.

    Turns and calls have no common clock, so this is only said where the run succeeded and nothing else failed.
    """
    latest: dict[str, Call] = {}
    pairs: list[tuple[Call, Call]] = []
    for call in calls:
        before = latest.get(call.tool)
        if before is not None and before.given != call.given and same_goal(before.given, call.given):
            pairs.append((before, call))
        latest[call.tool] = call
    changing = [pair for pair in pairs if changes_state(pair[0].tool)] or pairs
    return [
        _fixed(calls, [_as_failure(before, "complaint")], after, concrete=concrete) for before, after in changing[-1:]
    ]
