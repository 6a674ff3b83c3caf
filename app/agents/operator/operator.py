"""The scripted operator: trial and error from a fixed list of repairs. It is not an LLM.

Without memory it runs the naive statement, looks at the catalog, and tries the generic repairs one
after another. A repair after which Postgres complains about something else is kept, and the search
goes on from there; so chains of two repairs can be found. It reads no error message beyond that.

With memory it looks at the catalog first and tries what worked in the cases of the slate, best
first, as far as that applies to its own statement (guidance, not orders). If none of it helps, it
goes on exactly as without memory, less what it has just tried; repairs that a failed case lists as
useless come last, and are not forbidden: the failed case may have been about something else.
"""

from app.agents.memory import AgentRun, RememberedCase, RetrievedCases
from app.agents.operator.catalog import Catalog
from app.agents.operator.repairs import Repair, apply_chain, named_in, shuffled
from app.agents.operator.scratch import Result
from app.agents.operator.script import Script, naive
from app.agents.operator.tasks import Task
from app.agents.world import Environment, StepsSpent

Chain = tuple[Repair, ...]

STEP_BUDGET = 14
"""Steps a task: enough for about four in five without memory."""

_WORKED = "apply repair: "
_FAILED = "tried without success: "


class Operator:
    """One run of one task in `world`, which is a scratch database."""

    def __init__(self, task: Task, slate: RetrievedCases, world: Environment, *, order_seed: str) -> None:
        self._task = task
        self._world = world
        self._naive = naive(task.naive)
        useless = {repair for case in slate.cases if case.outcome != "success" for repair in _repairs(case)}
        self._order = sorted(shuffled(order_seed), key=lambda repair: repair in useless)
        # Cases that say the same thing are one proposal; it counts for the best of them.
        self._proposals = {_repairs(case): case for case in reversed(slate.cases) if case.outcome == "success"}
        self._results: dict[Chain, Result] = {}
        self._used: list[str] = []

    async def run(self) -> AgentRun:
        """The finished run: the goal reached, or the steps or the ideas spent."""
        try:
            chain = await self._work()
        except StepsSpent:
            chain = None
        success = chain is not None
        return AgentRun(
            task=self._task.text,
            plan=tuple(_WORKED + repair.title for repair in chain) if chain is not None else self._useless_plan(),
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
        return await self._search(catalog or await self._inspect(), first)

    async def _follow(self, catalog: Catalog) -> Chain | None:
        """The first remembered chain of repairs that applies and reaches the goal."""
        for chain, case in reversed(self._proposals.items()):
            script = apply_chain(self._naive, chain, catalog)
            if script is None:
                continue
            self._used.append(case.case_id)
            if (await self._attempt(chain, script)).reached:
                return chain
        return None

    async def _search(self, catalog: Catalog, last: Result) -> Chain | None:
        """The chain found by trying the list; a repair that changes the error is kept."""
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

    async def _inspect(self) -> Catalog:
        catalog: Catalog = await self._world.step(None)
        return catalog

    async def _attempt(self, chain: Chain, script: Script) -> Result:
        # Noted before it runs: an attempt that the budget cuts short was made, and did not help.
        self._results[chain] = Result(reached=False)
        result: Result = await self._world.step(script)
        self._results[chain] = result
        return result

    def _useless_plan(self) -> tuple[str, ...]:
        lasts = dict.fromkeys(chain[-1].title for chain in self._results if chain)
        return tuple(_FAILED + title for title in lasts)


def _repairs(case: RememberedCase) -> Chain:
    """The repairs that a case's plan names, in order."""
    return tuple(repair for repair in map(named_in, case.plan) if repair is not None)
