"""The rival that casebank is measured by: rare words in common, the newest of equals, one of each plan."""

from app.demo.memory import PLACES, AgentRun, KeywordMemory, RetrievedCases
from app.demo.memory_text import parse_cases


async def filled(*runs: tuple[str, str, bool]) -> KeywordMemory:
    memory = KeywordMemory()
    for task, plan, success in runs:
        await memory.retain(AgentRun(task, (plan,), (), success=success, first_try=False), RetrievedCases())
    return memory


async def told(memory: KeywordMemory, task: str) -> list[str]:
    return [case.actions[0] for case in parse_cases((await memory.retrieve(task)).text)]


async def test_rare_words_in_common_weigh_more_than_common_ones():
    memory = await filled(
        ("add the amber row to the list", "one", True),
        ("add the birch row to the list", "two", True),
        ("rebuild the fjord index", "three", True),
    )
    assert (await told(memory, "list the fjord"))[0] == "three"


async def test_of_equal_runs_the_newest_comes_first_and_each_plan_stands_once():
    memory = await filled(("save it", "old way", True), ("save it", "new way", True), ("save it", "old way", True))
    assert await told(memory, "save it") == ["old way", "new way"]


async def test_it_tells_four_runs_at_most_and_says_which_failed():
    memory = await filled(*((f"task {n}", f"plan {n}", n % 2 == 0) for n in range(9)))
    cases = list(parse_cases((await memory.retrieve("task 3")).text))
    assert len(cases) == PLACES
    assert (cases[0].task, cases[0].went_well) == ("task 3", False)
