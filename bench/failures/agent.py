"""The scripted agent: it tries ways to do a task one after another, those first that a memory's text tells of.

It acts on texts alone: the runs and their outcomes in a `memory_context`, and the fixes in advice. Of a fix it takes
the way that the plan of its run names, or else the one of its own ways that changes the failed call as the fix did.
Ways that failed runs name as useless come last. It stops where the text says that no run got past this failure.
"""

import random
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from app.demo.memory import AgentRun, FailureMemory, RetrievedCases, Trace
from app.demo.memory_text import ParsedFix, parse_cases, parse_fixes, parse_plans
from app.demo.operator.operator import FAILED, MET_THROUGHOUT, NOBODY_PASSED
from bench.failures.kinds import Attempts, Task

WORKED = "do it this way: "
"""Prefix of a plan line that names the way that worked."""
LEAST = 0.35
"""Least F1 of words, 0 to 1, at which a way counts as the one that a fix tells."""
_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(slots=True)
class Finished:
    """One task as the agent did it.

    Attributes:
        tried: titles of the ways in order; the last one worked if the run is a success.
        failed: failed calls at which memory was asked.
        advised: those that it answered with a way that was not tried yet.
        helped: those whose first way then worked.
    """

    run: AgentRun
    tried: Sequence[str]
    failed: int
    advised: int
    helped: int


@dataclass(slots=True)
class Agent:
    """One run of one task.

    Attributes:
        slate: the memory's answer at the start.
        memory: memory that is asked when a call has failed; None: none is.
        order_seed: seed of the order of the agent's own ways.
    """

    task: Task
    attempts: Attempts
    slate: RetrievedCases
    memory: FailureMemory | None
    order_seed: str
    _next: list[str] = field(default_factory=list)
    _traces: list[Trace] = field(default_factory=list)
    _errors: dict[str, str] = field(default_factory=dict)
    """Errors by the title of the way that met them, in order."""
    _failed: int = 0
    _advised: int = 0
    _helped: int = 0

    async def run(self) -> Finished:
        """Tries ways until one works, none is left, or memory tells that none will."""
        told = list(parse_cases(self.slate.text))
        self._next = self._good(self.slate.text)
        useless = {line.removeprefix(FAILED) for case in told if not case.went_well for line in case.actions}
        rules = {line.removeprefix(MET_THROUGHOUT) for line in useless if line.startswith(MET_THROUGHOUT)}
        own = list(self.task.acts)
        random.Random(self.order_seed).shuffle(own)
        own.sort(key=lambda title: title in useless)
        is_advised = False
        while (title := next((way for way in (*self._next, *own) if way not in self._errors), None)) is not None:
            error = self._try(title)
            if error is None:
                self._helped += is_advised
                return self._finished(title)
            rule, is_new = _rule(error), error not in {*self._errors.values()}
            self._errors[title] = error
            is_advised = False
            if rule in rules:
                break
            if self.memory is not None and is_new:
                text = await self.memory.at_failure(self.task.text, self._traces[-1], self.slate)
                self._failed += 1
                lines = [line for case in parse_cases(text) if not case.went_well for line in case.actions]
                if NOBODY_PASSED in text or MET_THROUGHOUT + rule in lines:
                    break
                ways = [way for way in (*self._fixes(text, title), *self._good(text)) if way not in self._errors]
                self._next, is_advised = [*ways, *self._next], bool(ways)
                self._advised += is_advised
        return self._finished(None)

    def _try(self, title: str) -> str | None:
        """Makes a call; returns its error, or None if the task is done."""
        given, started = self.task.acts[title], time.perf_counter()
        result = self.attempts(self.task, given)
        elapsed_ms = round((time.perf_counter() - started) * 1000, 3)
        status = "ok" if result.done else "error"
        self._traces.append(
            Trace(self.attempts.tool, {self.attempts.argument: given}, result.output, status, elapsed_ms)
        )
        return None if result.done else result.output

    def _good(self, text: str) -> list[str]:
        """Returns the ways of the runs that went well, in the text's order."""
        plans = [case.actions for case in parse_cases(text) if case.went_well] + parse_plans(text)
        return [way for plan in plans for way in self._named(plan)]

    def _named(self, plan: Sequence[str]) -> list[str]:
        titles = (line.removeprefix(WORKED) for line in plan if line.startswith(WORKED))
        return [title for title in titles if title in self.task.acts]

    def _fixes(self, text: str, failed: str) -> list[str]:
        """Returns the ways that the fixes of an advice tell, the best first."""
        changes = {
            title: _change(self.task.acts[failed], act) for title, act in self.task.acts.items() if title != failed
        }
        ways: list[str] = []
        for fix in parse_fixes(text):
            if named := self._named(fix.plan):
                ways += named
                continue
            told = _told(fix)
            best = max(changes, key=lambda title: _f1(told, changes[title]))
            ways += [best] if _f1(told, changes[best]) >= LEAST else []
        return ways

    def _finished(self, worked: str | None) -> Finished:
        """Returns the run, whose plan tells what worked, or what did not and which rule stood in the way."""
        rules = {_rule(error) for error in self._errors.values()}
        if worked is not None:
            plan = [WORKED + worked]
        else:
            rule = [MET_THROUGHOUT + rule for rule in rules if len(rules) == 1]
            plan = [*rule, *(FAILED + title for title in self._errors)]
        run = AgentRun(
            task=self.task.text,
            plan=tuple(plan),
            traces=tuple(self._traces),
            success=worked is not None,
            first_try=worked is not None and not self._errors,
        )
        tried = [*self._errors, *([worked] if worked is not None else [])]
        return Finished(run, tried, self._failed, self._advised, self._helped)


def _rule(error: str) -> str:
    """Returns the first line of an error."""
    return error.splitlines()[0] if error else ""


def _told(fix: ParsedFix) -> Counter[str]:
    """Returns the change that a fix tells."""
    changes = [("", statement) for statement in fix.first] + [*fix.changes]
    return sum((_change(before, after) for before, after in changes), Counter())


def _change(before: str, after: str) -> Counter[str]:
    """Returns the counts of the words that came, and of those that went, which begin with "gone "."""
    old, new = Counter(_WORD.findall(before)), Counter(_WORD.findall(after))
    gone: Mapping[str, int] = {f"gone {word}": count for word, count in (old - new).items()}
    return Counter({**(new - old), **gone})


def _f1(told: Counter[str], words: Counter[str]) -> float:
    return 2 * (told & words).total() / ((told + words).total() or 1)
