"""Advice at failed calls of real agents, leaving their customer out, beside the nearest failure by words in common.

Each failure of tau's runs asks the failures of other customers' runs. A told fix is right if it is of the kind that
worked there: the same arguments changed, the same other tool, or the same tool called first. So do the failed calls of
``failure_events.jsonl``, whose fixes are labelled by another rule: a later call of the same tool that did not fail. The
rival tells the fix of the failure with most words in common (cosine over tool, error and arguments), as often as advice
does: it takes the failures that it is surest of.

Shell commands that really failed and were put right, judged by hand, are a bank of their own: each failure is met again
by another run.
"""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from bench.measure import Measurement
from policy.advice import RIGHT, Failures, advise, threshold
from policy.channels import words
from writer.analysis.calls import StoredRun, calls_in
from writer.analysis.fixes import Fix, RunFailure, failures_of, sign_of

BESIDE_THE_REPOSITORY = Path(__file__).parents[1] / ".." / "shared" / "data"
DOMAINS = ("retail", "airline")
PRECISION = 0.8
SHELL = Path(__file__).parents[1] / "tests" / "writer" / "analysis" / "data" / "shell_fixes.json"
LOWER_PRECISION = 0.3
"""Precision of an agent that would search in any case."""
SHELL_TASK = "make it work"
MOST = 500
"""Newest failures of other customers that are asked."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A failure of a recorded run.

    Attributes:
        user: the customer.
        run: number of the run.
        text: words of tool, error and arguments, for the rival.
        task: words of the task.
    """

    user: str
    run: int
    failure: RunFailure
    text: frozenset[str]
    task: list[str]

    @property
    def fix(self) -> frozenset[str]:
        """Returns the parts of the fix; empty: nothing worked."""
        return frozenset() if self.failure.fix is None else frozenset(self.failure.fix.terms)


def measure(data: Path | None = None) -> list[Measurement]:
    """Returns coverage and precision of advice in each domain, or a row that says that it was skipped."""
    folder = (data or BESIDE_THE_REPOSITORY) / "tau"
    found = [name for name in DOMAINS if (folder / name / "runs.jsonl").is_file()]
    if not found:
        why = "its data is not on this machine; --data or CASEBANK_DATA names it"
        return [Measurement("advice: SKIPPED", float("nan"), "", why)]
    return [row for name in found for row in _domain(name, folder / name / "runs.jsonl")]


def measure_shell() -> list[Measurement]:
    """Returns how the shell failures, each met again by another run, find the fix of their first run."""
    met = list(_shell_failures())
    bank = _Bank(met)
    ranked = sum(bank.first(each)[0] == each.fix for each in met)
    rows = [
        Measurement("advice: shell, the own fix ranks first", ranked / len(met), "share", f"{ranked} of {len(met)}")
    ]
    for precision in (RIGHT, LOWER_PRECISION):
        told = [(each, fix) for each in met if (fix := bank.tells(each, precision)) is not None]
        right = sum(each.fix == fix for each, fix in told)
        detail = f"{right} right of {len(told)} told, of {len(met)}"
        name = f"advice: shell, told and right at precision {precision:g}"
        rows.append(Measurement(name, right / len(met), "share", detail))
    return rows


def _shell_failures() -> Iterable[Asked]:
    for number, fix in enumerate(orjson.loads(SHELL.read_bytes())):
        calls = [{"tool": "bash", "input": {"command": each["command"]}, **each} for each in fix["calls"]]
        for failure in failures_of(StoredRun(SHELL_TASK, "success", calls)):
            yield Asked(fix["name"], number, failure, _text(failure), words(SHELL_TASK))


def _domain(name: str, file: Path) -> list[Measurement]:
    asked = list(_failures(file))
    banks = {user: _Bank([each for each in asked if each.user != user][-MOST:]) for user in {e.user for e in asked}}
    told = [banks[each.user].tells(each) for each in asked]
    fixed = [place for place, each in enumerate(asked) if each.fix]
    spoken = [place for place in fixed if told[place] is not None]
    right = sum(_same_kind(asked[place].fix, told[place] or frozenset()) for place in spoken)
    rival = sorted((banks[asked[place].user].rival(asked[place]) for place in fixed), key=lambda pair: -pair[0])
    rival_right = sum(ok for _, ok in rival[: len(spoken)])
    silent = [place for place, each in enumerate(asked) if not each.fix]
    wrong = sum(told[place] is not None for place in silent)

    def share(what: str, part: int, of: int, aim: float | None = None) -> Measurement:
        return Measurement(f"advice: {name}, {what}", part / max(of, 1), "share", f"{part} of {of}", aim, at_least=True)

    events = list(_events(file))
    answers = [(each, banks[each.user].tells(each)) for each in events if each.user in banks]
    heard = [(each.fix, fix) for each, fix in answers if fix is not None]
    of_kind = sum(_same_kind(*pair) for pair in heard)
    return [
        share("failure events that got advice", len(heard), len(events)),
        share("told fixes of the event's kind", of_kind, len(heard), PRECISION),
        share("failures put right that got advice", len(spoken), len(fixed)),
        share("told fixes of the kind that worked", right, len(spoken), PRECISION),
        share("the same of the nearest failure by words", rival_right, len(spoken)),
        share("failures never put right that got a fix", wrong, len(silent)),
    ]


class _Bank:
    """The failures of other customers, and what they tell."""

    def __init__(self, bank: Sequence[Asked]) -> None:
        self._bank = bank
        none = np.zeros(len(bank), np.float32)
        self._past = Failures(
            terms={name: [_numbers(_terms(each)[name]) for each in bank] for name in ("error", "call", "task")},
            tool=_numbers(each.failure.sign.tool for each in bank),
            run=np.array([each.run for each in bank], np.int32),
            fix=[_numbers(each.fix) for each in bank],
            proven=none > 0,
            told=none,
            helped=none,
        )
        self._least = {precision: threshold(self._past, precision) for precision in (RIGHT, LOWER_PRECISION)}

    def first(self, asked: Asked) -> tuple[frozenset[str], float]:
        """Returns the fix that ranks first, and the confidence in it."""
        terms = {name: _numbers(some) for name, some in _terms(asked).items()}
        confidence = advise(self._past, terms, int(_numbers([asked.failure.sign.tool])[0])).confidence
        best = int(confidence.argmax())
        return self._bank[best].fix, float(confidence[best])

    def tells(self, asked: Asked, precision: float = RIGHT) -> frozenset[str] | None:
        """Returns the fix that is told first; None: silence."""
        fix, confidence = self.first(asked)
        return fix if confidence >= self._least[precision] else None

    def rival(self, asked: Asked) -> tuple[float, bool]:
        """Returns the likeness of the nearest failure with a fix, and whether its fix is of the kind that worked."""
        pairs = [
            (len(asked.text & each.text) / np.sqrt(max(len(asked.text) * len(each.text), 1)), place)
            for place, each in enumerate(self._bank)
            if each.fix
        ]
        likeness, place = max(pairs)
        return float(likeness), _same_kind(asked.fix, self._bank[place].fix)


def _failures(file: Path) -> Iterable[Asked]:
    for number, line in enumerate(file.read_bytes().splitlines()):
        run: Mapping[str, Any] = orjson.loads(line)
        traces = [_trace(step) for step in run["steps"] if step.get("by") != "user"]
        stored = StoredRun(run["task_text"], "success" if run["reward"] == 1 else "failure", traces)
        for failure in failures_of(stored):
            yield Asked(run["user"], number, failure, _text(failure), words(run["task_text"]))


def _events(file: Path) -> Iterable[Asked]:
    """Yields the failed calls of ``failure_events.jsonl``, labelled by another rule, each with the label as its fix."""
    runs: dict[str, Mapping[str, Any]] = {}
    for line in file.read_bytes().splitlines():
        run = orjson.loads(line)
        runs[run["run_id"]] = run
    for number, line in enumerate(file.with_name("failure_events.jsonl").read_bytes().splitlines()):
        event = orjson.loads(line)
        run = runs[event["run_id"]]
        (call,) = calls_in([_trace(run["steps"][event["fail_idx"][0]])])
        terms = [f"arg:{name}" for name in event["changed_args"]] or ["again"]
        fix = Fix([*terms, *(f"first:{tool}" for tool in event["between"])])
        failure = RunFailure(sign_of(call, run["task_text"]), event["error"], event["n_fails"], fix)
        yield Asked(event["user"], number, failure, _text(failure), words(run["task_text"]))


def _trace(step: Mapping[str, Any]) -> dict[str, Any]:
    return {"tool": step["tool"], "input": step["input"], "output": step["output"], "status": _status(step)}


def _text(failure: RunFailure) -> frozenset[str]:
    """Returns the words of a failure's error and call."""
    return frozenset(words(f"{failure.sign.line} {' '.join(failure.sign.call)}"))


def _status(step: Mapping[str, Any]) -> str:
    return "error" if step["error"] else "ok"


def _terms(asked: Asked) -> dict[str, list[str]]:
    return {"error": asked.failure.sign.error, "call": asked.failure.sign.call, "task": asked.task}


def _numbers(texts: Iterable[str]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array([zlib.crc32(text.encode()) - 2**31 for text in texts], dtype=np.int32)


def _same_kind(one: frozenset[str], other: frozenset[str]) -> bool:
    """Returns whether two fixes changed the same arguments, went to the same tool, or called the same tool first."""
    changed = [{part for part in fix if part.startswith(("arg:", "again", "instead:"))} for fix in (one, other)]
    first = [{part for part in fix if part.startswith("first:")} for fix in (one, other)]
    return changed[0] == changed[1] or bool(first[0] & first[1])
