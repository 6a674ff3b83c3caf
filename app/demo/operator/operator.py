"""The scripted operator: trial and error from a fixed list of repairs. It is not an LLM.

Without memory it runs the naive statement, looks at the catalog, and tries the generic repairs one
after another. A repair after which Postgres complains about something else is kept, and the search
goes on from there; so chains of two repairs can be found. It reads no error message beyond that.

With memory it reads the memory's texts alone. It looks at the catalog first and tries what
worked in the runs that the text tells of, in its order, as far as that applies to its own statement (guidance, not
orders). If none of it helps, it goes on exactly as without memory, less what it has just tried; repairs that a failed
run lists as useless come last, and are not forbidden: that run may have been about something else. Where a failed run
met one of the database's own rules whatever it tried, and this one meets the same, it gives up.

A memory that can be asked at a failure is asked whenever a statement meets an error that the run has not met before,
and what it advises is tried first.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

from app.demo.memory import AgentRun, FailureMemory, RetrievedCases, Trace
from app.demo.memory_text import parse_cases, parse_fixes, parse_plans
from app.demo.operator.catalog import Catalog
from app.demo.operator.families import Task
from app.demo.operator.repairs import REPAIRS, Repair, apply_chain, named_in, shuffled
from app.demo.operator.scratch import Result, StepsSpent
from app.demo.operator.script import RepairScript, naive

LEAST = 0.35
"""Least F1 between the words that a fix and a repair change, 0 to 1, at which the fix is taken for that repair."""
_NAME = re.compile(r"\w+")
_WORD = re.compile(r"\w+|[\"'.(|:,]")
_TYPES = frozenset(("bigint", "boolean", "date", "integer", "numeric", "text", "timestamptz"))
_FUNCTIONS = frozenset(("ctid", "excluded", "kept", "late", "max", "min", "setval"))
A_TYPE = "a type"
"""Placeholder for the name of a data type; the column's name shows which type is right."""
OTHER_CASE = "other case"
"""Placeholder for a name in other upper and lower case, such as Payments for payments."""


Chain = tuple[Repair, ...]


def advised(text: str, chain: Chain, script: RepairScript, catalog: Catalog) -> list[Chain]:
    """Returns a chain of repairs for each fix of the text, the best fix first, and then for each plan.

    These are the repairs that the plan of the fix's run names, or else, behind this chain or alone, the one whose
    change of SQL is likest to the fix.
    """
    fixes = parse_fixes(text)
    of_plans = [chain for plan in parse_plans(text) if (chain := _repairs(plan))]
    if not fixes:
        return of_plans
    behind = {repair: _made_by(script, chain, repair, catalog) for repair in REPAIRS}
    alone = {repair: _made_by(script, (), repair, catalog) for repair in REPAIRS}
    found = []
    for fix in fixes:
        if named := _repairs(fix.plan):
            found.append(named)
            continue
        told = Counter[str]()  # the change of SQL that the fix tells
        for before, after in (*(("", statement) for statement in fix.first), *fix.changes):
            told += _change(before, after)
        scores = {
            (*first, repair): 2 * (told & words).total() / ((told + words).total() or 1)  # F1
            for first, wanted in (((), alone), (chain, behind))
            for repair, words in wanted.items()
            if words
        }
        best = max(scores, key=lambda each: (scores[each], len(each)), default=None)
        if best is not None and scores[best] >= LEAST:
            found.append(best)
    return found + of_plans


def _made_by(script: RepairScript, chain: Chain, repair: Repair, catalog: Catalog) -> Counter[str] | None:
    """Returns the change of SQL that a repair makes; None if it does not apply or was applied."""
    current = apply_chain(script, chain, catalog)
    longer = None if current is None or repair in chain else repair.edit(current, catalog)
    if current is None or longer is None:
        return None
    return _change(" ".join(current.statements), " ".join(longer.statements))


def _change(before: str, after: str) -> Counter[str]:
    """Returns the counts of the words that came, and of those that went, which begin with "gone "."""
    old, new = _sql(before), _sql(after)
    names = set(_NAME.findall(before)), set(_NAME.findall(after))
    folded = {name.casefold() for name in names[0]}
    respelt = any(name.casefold() in folded for name in names[1] - names[0])
    gone = {f"gone {word}": count for word, count in (old - new).items()}
    return Counter({**(new - old), **gone, **({OTHER_CASE: 1} if respelt else {})})


def _sql(text: str) -> Counter[str]:
    """Returns the counts of the words that any table could have: key words, functions, types and signs."""
    words = (A_TYPE if word in _TYPES else word for word in _WORD.findall(re.sub(r"<\w+>", "''", text)))
    return Counter(word for word in words if not word[0].isalnum() or word.isupper() or word in {A_TYPE, *_FUNCTIONS})


STEP_BUDGET = 14
"""Maximum number of steps of a task; enough for about four in five tasks without memory."""

WORKED = "apply repair: "
"""Prefix of a plan line that names the repair that worked."""
FAILED = "tried without success: "
"""Prefix of a plan line that names a repair that did not help."""
MET_THROUGHOUT = "met whatever was tried: "
"""Prefix of a plan line that quotes a rule that no repair got past."""
_RULE = "P0001"
"""SQLSTATE of errors raised by functions of the database: no repair of a statement changes such a rule."""

NOBODY_PASSED = "got past it"
"""Words in a text of advice that mark a failure which stopped every earlier run."""


class World(Protocol):
    """The database as the operator sees it: a script, or None for a look at the catalog, is a step."""

    @property
    def traces(self) -> Sequence[Trace]:
        """The steps since the last reset, one entry for each."""

    async def step(self, action: RepairScript | None) -> Any:
        """Performs the action and returns the observation."""


class _Hopeless(Exception):
    """Raised when memory has a run that met this error with every repair."""


class Operator:
    """One run of one task in a scratch database."""

    def __init__(
        self,
        task: Task,
        slate: RetrievedCases,
        world: World,
        *,
        order_seed: str,
        memory: FailureMemory | None = None,
    ) -> None:
        self._task = task
        self._slate = slate
        self._world = world
        self._memory = memory
        self._advice: list[tuple[Chain, str]] = []
        self._met: set[str] = set()
        self._naive = naive(task.naive)
        told = list(parse_cases(slate.text))
        failed = [line for case in told if not case.went_well for line in case.actions]
        useless = set(_repairs(failed))
        self._order = sorted(shuffled(order_seed), key=lambda repair: repair in useless)
        self._hopeless = {line.removeprefix(MET_THROUGHOUT) for line in failed if line.startswith(MET_THROUGHOUT)}
        # Runs with equal repairs are one proposal, credited to the best of them.
        good = [case for case in reversed(told) if case.went_well]
        self._proposals: dict[Chain, str | None] = {}
        for case in good:
            self._proposals[_repairs(case.actions)] = slate.case_id(case.place)
        self._results: dict[Chain, Result] = {}
        self._used: list[str] = []

    async def run(self) -> AgentRun:
        """Runs the task until the goal is reached, or no steps or repairs are left."""
        try:
            chain = await self._work()
        except (StepsSpent, _Hopeless):
            chain = None
        success = chain is not None
        if chain is not None:
            plan = [WORKED + repair.title for repair in chain]
        else:  # what to expect of the task, and what not to try again
            signatures = (result.signature or "" for result in self._results.values())
            rules = {signature for signature in signatures if signature.startswith(_RULE)}
            lasts = dict.fromkeys(tried[-1].title for tried in self._results if tried)
            plan = [*(f"{MET_THROUGHOUT}{rule}" for rule in rules), *(FAILED + title for title in lasts)]
        return AgentRun(
            task=self._task.text,
            plan=tuple(plan),
            traces=tuple(self._world.traces),
            success=success,
            first_try=success and len(self._results) == 1,
            used_case_ids=tuple(self._used),
        )

    async def _work(self) -> Chain | None:
        catalog = await self._inspect() if self._proposals else None
        if catalog is not None:
            chain = await self._follow(catalog)
            if chain is not None:
                return chain
        first = await self._attempt((), self._naive)
        if first.reached:
            return ()
        catalog = catalog or await self._inspect()
        chain = await self._follow(catalog)
        return chain if chain is not None else await self._search(catalog, first)

    async def _follow(self, catalog: Catalog) -> Chain | None:
        """Returns the first remembered chain of repairs that applies and reaches the goal."""
        while self._take_advice(catalog) or self._proposals:
            chain, case_id = self._proposals.popitem()
            script = None if chain in self._results else apply_chain(self._naive, chain, catalog)
            if script is None:
                continue
            if case_id is not None:
                self._used.append(case_id)
            if (await self._attempt(chain, script)).reached:
                return chain
        return None

    async def _search(self, catalog: Catalog, last: Result) -> Chain | None:
        """Searches the list of repairs for a chain; a repair that changes the error is kept."""
        chain: Chain = ()
        candidates = iter(self._order)
        while (repair := next(candidates, None)) is not None:
            longer = (*chain, repair)
            script = None if repair in chain else apply_chain(self._naive, longer, catalog)
            if script is None:
                continue
            result = self._results.get(longer) or await self._attempt(longer, script)
            if result.reached:
                return longer
            if result.signature not in (None, last.signature):
                chain, last, candidates = longer, result, iter(self._order)
        return None

    def _take_advice(self, catalog: Catalog) -> bool:
        """Turns the advice that came since into proposals, which come before all others; returns whether there are."""
        for chain, text in self._advice:
            again = {_repairs(case.actions) for case in parse_cases(text) if case.went_well}
            best_last = [*advised(text, chain, self._naive, catalog), *again][::-1]
            for proposal in best_last:
                case_id = self._proposals.pop(proposal, None)
                if proposal not in self._results:
                    self._proposals[proposal] = case_id
        self._advice.clear()
        return bool(self._proposals)

    async def _inspect(self) -> Catalog:
        catalog: Catalog = await self._world.step(None)
        return catalog

    async def _attempt(self, chain: Chain, script: RepairScript) -> Result:
        # Recorded first: an attempt that the budget cuts short counts as one that failed.
        self._results[chain] = Result(reached=False)
        result: Result = await self._world.step(script)
        self._results[chain] = result
        if result.signature in self._hopeless:
            raise _Hopeless
        if self._memory is not None and result.signature and result.signature not in self._met:
            self._met.add(result.signature)
            text = await self._memory.at_failure(self._task.text, self._world.traces[-1], self._slate)
            failed = [line for case in parse_cases(text) if not case.went_well for line in case.actions]
            if NOBODY_PASSED in text or f"{MET_THROUGHOUT}{result.signature}" in failed:
                raise _Hopeless
            self._advice.append((chain, text))
        return result


def _repairs(plan: Sequence[str]) -> Chain:
    return tuple(repair for repair in map(named_in, plan) if repair is not None)
