"""The memory of the ceiling tells a solution when a run may know it, and not before."""

from app.demo.memory import AgentRun, RetrievedCases
from app.demo.operator.house import House
from app.demo.operator.operator import WORKED
from app.demo.operator.repairs import REPAIRS
from bench.ceiling import SolutionMemory

HOUSE = House(1, 60)
TITLES = {repair.key: repair.title for repair in REPAIRS}
SOLUTIONS = [tuple(WORKED + TITLES[key] for key in keys) for keys in HOUSE.solutions()]


async def told(memory: SolutionMemory, *, solve: bool) -> list[tuple[str, ...]]:
    """Plays the house's tasks and returns the plans that each slate told as successes, solution by solution."""
    plans = []
    for task, solution in zip(HOUSE.tasks(), SOLUTIONS, strict=True):
        slate = await memory.retrieve(task.text)
        plans += [case.plan for case in slate.cases if case.outcome == "success"]
        run = AgentRun(task.text, solution, (), success=solve and bool(solution), first_try=False)
        await memory.retain(run, RetrievedCases())
    return plans


async def test_a_solution_is_told_from_the_second_time_on_and_only_if_a_run_found_it():
    solvable = [solution for solution in SOLUTIONS if solution]
    again = [solution for place, solution in enumerate(solvable) if solution in solvable[:place]]
    assert 0 < len(again) < len(solvable) < len(SOLUTIONS)
    assert await told(SolutionMemory(HOUSE, foreseen=False), solve=True) == again
    assert await told(SolutionMemory(HOUSE, foreseen=False), solve=False) == []


async def test_a_foreseen_solution_is_told_from_the_first_time_on():
    assert await told(SolutionMemory(HOUSE, foreseen=True), solve=False) == [each for each in SOLUTIONS if each]
