"""Failed calls in the form that the bank stores: the sign of each failure, and its fix, in words and in terms.

Like failures have the same *sign*: the terms of the error, the call and the tool. A *fix* is the smallest difference
between the failed call and the call that succeeded: changed arguments, with values that name a choice such as
`store_credit`, and the calls that came between. Terms are short texts that become keyed hashes; they contain no values
that differ in every run, such as ids.
"""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise

from policy.channels import words
from writer.analysis.argument_diff import (
    LEFT_OUT,
    as_object,
    concrete_differences,
    differences,
    source_changes,
)
from writer.analysis.calls import Call, StoredRun
from writer.analysis.causes import quoted
from writer.analysis.dangers import is_dangerous
from writer.analysis.edits import edit_difference, edit_of
from writer.analysis.failures import Failure, RunFailures, find
from writer.analysis.moves import moves_of_call, named_by
from writer.analysis.placeholders import abstract, clean, without_placeholders
from writer.analysis.remedy import calls_before, instead, tool_name
from writer.analysis.source_differences import source_terms
from writer.analysis.statements import language_of, statement_of, tokens
from writer.analysis.value_differences import statement_told

ERROR_CHARS = 400
"""Maximum characters of an error that are read."""
PART_CHARS = 160
"""Maximum characters of one part of a fix in words."""
MOST_PARTS = 5
"""Maximum number of changes of a fix, and of steps of its plan, that are stored."""
NAMED = frozenset(("<identifier>", "<string>"))
"""Placeholders of tokens whose words are compared as well, so that two changes of names differ."""
MOST_FAILURES = 20
"""Maximum number of failures of a run that are stored, those with a fix first."""
MOST_TERMS = 64
"""Maximum number of terms of an error, of a call and of a fix that are stored."""
_CODE = re.compile(r"\b[1-5]\d\d\b|\b[A-Z]{1,12}[-_]?\d{2,6}\b|\b\d{2}[0-9A-Z]{3}\b")
"""Pattern of error codes: of HTTP, of libraries, of SQL."""
_NAME = re.compile(r"[^\W\d][\w$]*")
_INDEX = re.compile(r"\.\d+(?=\.|$)")
"""Pattern of a position in a list, in the path of an argument."""
_PIECE = re.compile(r"[^\W\d_]{3,}")
"""Pattern of a word in a name or in a string."""
_PLACEHOLDER = re.compile(r"<\w+>")


@dataclass(frozen=True, slots=True)
class Sign:
    """The terms by which failures like this one are found.

    Attributes:
        line: the tool, and the first line of the error with placeholders for values.
        error: words and codes of the error.
        call: the moves of the call.
    """

    tool: str
    line: str
    error: list[str]
    call: list[str]


@dataclass(frozen=True, slots=True)
class Fix:
    """The change that put a failure right in a run.

    Attributes:
        terms: the parts of the change; two fixes with the same terms are the same fix.
        instead: the other tool that did the same; empty if the tool itself worked later.
        changes: differences between the failed call and the one that worked, in words; empty: the same call worked.
        first: calls between failure and success that probably made the success possible, in words.
        plan: first steps of the plan that the backend gave for the run; empty: it gave none, or the run failed.
        dangerous: true if the call that worked destroys something or switches a check off.
    """

    terms: list[str]
    instead: str = ""
    changes: list[str] = field(default_factory=list)
    first: list[str] = field(default_factory=list)
    plan: list[str] = field(default_factory=list)
    dangerous: bool = False


@dataclass(frozen=True, slots=True)
class RunFailure:
    """A failure of a run, with its fix; a fix of None: no call of the run put the failure right.

    Attributes:
        error: the first line of the error, with placeholders, up to the first instruction; may be empty.
        calls: number of the run's calls that failed in this way.
    """

    sign: Sign
    error: str
    calls: int
    fix: Fix | None


def sign_of(call: Call, task: str = "") -> Sign:
    """Returns the sign of a failed call; an object of the call that its run's task names is data."""
    text = (call.failure or "")[:ERROR_CHARS]
    error = [*words(without_placeholders(abstract(text))), *(code.casefold() for code in _CODE.findall(text))]
    tool, line = tool_name(call.tool), line_of(call)
    moves = _moves_of(call, named_by(task))
    return Sign(tool, line, list(dict.fromkeys(error))[:MOST_TERMS], list(moves)[:MOST_TERMS])


def line_of(call: Call) -> str:
    """Returns the tool and the first line of the error, with placeholders for values."""
    line = next((part for part in (call.failure or "")[:ERROR_CHARS].splitlines() if part.strip()), "")
    return f"{tool_name(call.tool)}: {abstract(line).casefold()}"


def failures_of(run: StoredRun, given_plan: Sequence[str] = ()) -> list[RunFailure]:
    """Returns the failures of a run, at most MOST_FAILURES, those with a fix first; empty results are no failures.

    Failures with the same sign count as one failure; its fix is the last one, because the run failed again after the
    others.
    """
    failures = find(run.calls, (), succeeded=run.outcome == "success", task=run.task, concrete=True)
    plan = [clean(step, PART_CHARS) for step in given_plan[:MOST_PARTS]] if run.outcome == "success" else []
    kept: dict[str, RunFailure] = {}
    for failure in chain.from_iterable(_in_parts(failures, each) for each in (*failures.recovered, *failures.lost)):
        asking = failures.calls[failure.failed[0]]  # advice is asked for when the first call has failed
        line = line_of(asking)
        if asking.failure is None or (line not in kept and len(kept) == MOST_FAILURES):
            continue
        sign, calls = kept[line].sign if line in kept else sign_of(asking, run.task), len(failure.failed)
        fix = None if failure.succeeded is None else replace(_fix(failures, failure, asking), plan=plan)
        if line in kept:
            calls, fix = kept[line].calls + calls, fix or kept[line].fix
        kept[line] = RunFailure(sign, quoted(asking.failure), calls, fix)
    return list(kept.values())


def _in_parts(failures: RunFailures, failure: Failure) -> list[Failure]:
    """Returns a failure in parts, each put right by the next call that failed in another way; the last by the success.

    There is a part only where the success kept all changes of that next call; else it is unknown whether they helped.
    """
    if failure.succeeded is None or failure.kind == "other_tool":
        return [failure]
    calls, parts, rest = failures.calls, [], failure.failed
    for before, after in pairwise(failure.failed):
        if line_of(calls[before]) == line_of(calls[after]):
            continue
        new = _paths_changed(calls[rest[0]], calls[after])
        later = _paths_changed(calls[after], calls[failure.succeeded])
        if new and not any(one.startswith(other) or other.startswith(one) for one in new for other in later):
            done = rest.index(after)
            parts.append(replace(failure, failed=rest[:done], succeeded=after))
            rest = rest[done:]
    return [*parts, replace(failure, failed=rest)]


def _paths_changed(before: Call, after: Call) -> set[str]:
    """Returns the paths of the changed arguments, each with a dot at its end, so that "items." begins "items.0."."""
    return {f"{each.path}." for each in differences(before.arguments, after.arguments)}


def _fix(failures: RunFailures, failure: Failure, asking: Call) -> Fix:
    success = failures.calls[failure.succeeded or 0]
    if failure.kind == "other_tool":
        tool = instead(failures, failure)
        return Fix([f"instead:{tool}"], instead=tool, dangerous=is_dangerous(success))
    before = calls_before(failures, failure)
    changes = concrete_differences(asking.arguments, success.arguments)
    terms = change_terms(asking, success) or ["again"]
    for call in before:  # by the words of its statement, or else by its tool and its edit
        edit = edit_of(call, failures.calls)
        words_of_call = [*_words_of(call)] or [tool_name(call.tool), *(source_terms(*edit) if edit else ())]
        terms += [f"first:{word}" for word in words_of_call]
    return Fix(
        terms[:MOST_TERMS],
        changes=[clean(each, PART_CHARS) for each in changes][:MOST_PARTS],
        first=list(dict.fromkeys(_in_words(call, failures.calls) for call in before)),
        dangerous=any(map(is_dangerous, (*before, success))),
    )


def _in_words(call: Call, calls: Sequence[Call]) -> str:
    """Returns a call by its tool and the statement that it runs or the edit that it makes."""
    if change := edit_difference(call, calls):
        return clean(f"{tool_name(call.tool)} ({change})", PART_CHARS)
    statement = statement_of(call.arguments)
    language = language_of(statement) if statement else None
    if statement is None or language is None:
        return tool_name(call.tool)
    return clean(f"{tool_name(call.tool)} `{statement_told(statement, language)}`", PART_CHARS)


def change_terms(failed: Call, later: Call) -> list[str]:
    """Returns the terms of the change from a failed call to a later call, without values that differ in every run.

    For calls with a statement, these are the words that were added and removed, also inside names and strings; for
    other calls, the arguments that changed, the words of source text that did, and the moves that only the later call
    has.
    """
    before, after = _words_of(failed), _words_of(later)
    if before and after:
        return [*(f"+{word}" for word in after if word not in before), *(f"-{word}" for word in before - after.keys())]
    names = (f"arg:{_INDEX.sub('', each.path)}" for each in differences(failed.arguments, later.arguments))
    had = _moves_of(failed)
    moves = (move for move in _moves_of(later) if move not in had and "<" not in move)
    return list(dict.fromkeys((*names, *source_changes(failed.arguments, later.arguments), *moves)))


def has_change(call: Call, terms: Sequence[str], in_words: Sequence[str] = ()) -> bool:
    """Returns whether a fix would change nothing in a call, because the call has all its changes.

    It is false for a fix that needs another tool, or another call first.

    Args:
        call: the call.
        terms: the terms of the fix.
        in_words: the changes of the fix in words, which are read if the fix only leaves arguments out.
    """
    words_had, moves_had = _words_of(call).keys(), _moves_of(call).keys()
    parts = [term for term in terms if not term.startswith("arg:")]
    if not parts:
        gone = [each.removesuffix(LEFT_OUT) for each in in_words if each.endswith(LEFT_OUT)]
        return 0 < len(gone) == len(in_words) and not any(_has_argument(call.arguments, path) for path in gone)

    def has(term: str) -> bool:
        if words_had and term[0] in "+-":
            return (term[1:] in words_had) == (term[0] == "+")
        return term in moves_had

    return all(map(has, parts))


def _has_argument(arguments: object, path: str) -> bool:
    """Returns whether a call has an argument at this path, or, where the path is no path of names, may have it."""
    value = as_object(arguments)
    for key in path.split("."):
        if not isinstance(value, dict) or not key.isidentifier():
            return True
        if key not in value:
            return False
        value = value[key]
    return True


def _moves_of(call: Call, named: Collection[str] = ()) -> dict[str, None]:
    return dict.fromkeys(move for move, _ in moves_of_call(call, named))


def _words_of(call: Call) -> Counter[str]:
    """Returns the words of the statement that a call runs, with their counts; empty: the call runs no statement.

    A name stands as its form and its pieces, a string as its placeholder and its pieces; what identifies is left out.
    """
    statement = statement_of(call.arguments)
    language = language_of(statement) if statement else None
    if statement is None or language is None:
        return Counter()
    counts = Counter[str]()
    for token in tokens(statement, language):
        counts[_form(token.text) if token.shown == "<identifier>" else token.shown] += 1
        if token.shown in NAMED:
            counts.update({f"~{piece}": 1 for piece in _pieces_of(token.text)})
    return Counter(
        {f"{word} {number}" if number > 1 else word: 1 for word in counts for number in range(1, counts[word] + 1)}
    )


def _pieces_of(text: str) -> list[str]:
    """Returns the words in a name or in a string, without ids and other data of the run."""
    inner = text.strip("'\"`")
    told = abstract(inner)
    return _PIECE.findall((inner if told == "<identifier>" else _PLACEHOLDER.sub(" ", told)).casefold())


def _form(name: str) -> str:
    """Returns the form of a name in SQL: its quotes, its parts, and whether a part in quotes has capital letters."""
    return _NAME.sub(lambda part: "<Name>" if '"' in name and part[0] != part[0].lower() else "<name>", name)
