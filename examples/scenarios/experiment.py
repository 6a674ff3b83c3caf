"""A small experiment on memories of how to reason: the same riddles without memory and with it, prediction first.

A scripted solver tries methods until the checker takes an answer, or its budget is spent. With memory it begins with
the method that memory tells. `python -m examples.experiment` is the large one, with intervals and a picture.
"""

import random
import re
from dataclasses import dataclass
from typing import Any

import httpx
from casebank_client import Casebank

from examples.scenarios.place import Place, analysed, ask, new_name, promise, tell

RIDDLES = {
    "How many hours do two painters need together for the {}": ("add_the_rates", ["fence", "hall", "roof", "bridge"]),
    "Share the sweets fairly among the {}": ("use_remainders", ["twins", "scouts", "nurses", "sailors"]),
    "Find the shortest way home through the {}": ("search_breadth_first", ["maze", "forest", "cellar", "harbour"]),
}
"""Kinds of riddles, each with the method that solves it; the first of a kind is for practice."""
METHODS = ("guess", "draw_a_picture", "work_backwards", "add_the_rates", "use_remainders", "search_breadth_first")
BUDGET = 4
LEAST_SAVED, LEAST_WON, REUSED = -0.25, 10, 2
"""Below these the predictions are false: share of steps, points of success, tasks on which one procedure is reused."""
STEP_TOKENS = 400
"""Assumed cost of one attempt of a language model; what memory costs is measured."""


def story(place: Place) -> None:
    """States the predictions, practises, compares, and lets one procedure fail."""
    agent = new_name("scenario-experiment")
    tell("Predicted before the run: steps -37 %, success +15 points; false above -25 %, below +10 points.")
    with place.client() as memory, place.http() as http:
        for kind, (_, subjects) in RIDDLES.items():
            solve(memory, agent, kind.format(subjects[0]), budget=len(METHODS))
        analysed(http, agent)
        procedure = _procedure(http, agent, "Share the sweets fairly among the pirates")
        promise(
            "a successful run becomes a procedure with a trigger and steps", procedure["trigger"] and procedure["steps"]
        )
        promise("an unrelated task is told nothing", not memory.retrieve(agent, "Renew my passport")["memory_context"])

        tasks = [(kind, kind.format(subject)) for kind, (_, subjects) in RIDDLES.items() for subject in subjects[1:]]
        without = {task: solve(memory, agent, task, remembers=False) for _, task in tasks}
        with_memory = {task: solve(memory, agent, task) for _, task in tasks}
        analysed(http, agent)
        steps = sum(each.steps for each in with_memory.values()) / sum(each.steps for each in without.values()) - 1
        won = 100 * (_success(with_memory) - _success(without))
        tell(f"Measured on {len(tasks)} pairs: steps {steps:+.0%}, success {won:+.0f} points.")
        promise("memory saves a quarter of the steps or more", steps <= LEAST_SAVED)
        promise("memory wins ten points of success or more", won >= LEAST_WON)
        listed = ask(http, "GET", f"/v1/procedures?agent={agent}")["procedures"]
        promise("a procedure is reused on two tasks or more", max(each["use_reward"] for each in listed) >= REUSED)
        for kind in RIDDLES:
            pairs = [(without[task], with_memory[task]) for of, task in tasks if of == kind]
            saved = sum(STEP_TOKENS * (before.steps - after.steps) - after.tokens for before, after in pairs[:2])
            promise(f"the tokens are earned back after two tasks: {kind.format('…')}", saved > 0)

        tell("The riddle changes: the method of the procedure works no more.")
        failed = solve(memory, agent, "Share the sweets fairly among the thieves", works="draw_a_picture", budget=1)
        analysed(http, agent)
        versions = ask(http, "GET", f"/v1/procedures/{failed.procedure_id}/versions")["versions"]
        newest, oldest = versions[0], versions[-1]
        promise("a failed use writes a new version", newest["version"] > oldest["version"])
        promise(
            "the new version warns of what failed",
            "In a run that failed" in str(newest["record"]["learned_procedure_steps"]),
        )
        promise("the old version stays readable", oldest["status"] == "superseded" and oldest["record"])


@dataclass(frozen=True, slots=True)
class Attempt:
    """One riddle: the attempts it took, what memory cost, and the procedure that was followed."""

    steps: int
    solved: bool
    tokens: int
    procedure_id: str


def solve(  # noqa: PLR0913 - the riddle, and what is varied in the experiment
    memory: Casebank, agent: str, task: str, *, works: str = "", remembers: bool = True, budget: int = BUDGET
) -> Attempt:
    """Solves a riddle: by the method that memory tells, then by the others in an order drawn by the task."""
    works = works or next(method for kind, (method, _) in RIDDLES.items() if task.startswith(kind[:-2]))
    retrieved = memory.retrieve(agent, task, memory=remembers)
    own = random.Random(task).sample(METHODS, len(METHODS))
    recommended = re.findall(r"method=`?(\w+)", retrieved["memory_context"])
    order = sorted(own, key=lambda method: recommended.index(method) if method in recommended else len(METHODS))[
        :budget
    ]
    tried = order[: order.index(works) + 1] if works in order else order
    followed = [each["id"] for each in retrieved["procedures"][:1]]
    if remembers:
        memory.retain(
            agent,
            task,
            "success" if tried[-1] == works else "failure",
            tool_traces=[_checked(method, method == works) for method in tried],
            retrieval_id=retrieved["retrieval_id"],
            used_procedure_ids=followed,
        )
    return Attempt(len(tried), tried[-1] == works, retrieved["tokens"], "".join(followed))


def _checked(method: str, works: bool) -> dict[str, Any]:  # noqa: FBT001
    output = {"accepted": True} if works else "Error: the answer is wrong"
    return {"tool": "reason", "input": {"method": method}, "output": output, "status": "ok" if works else "error"}


def _procedure(http: httpx.Client, agent: str, trigger: str) -> dict[str, Any]:
    found: dict[str, Any] = ask(http, "POST", "/v1/procedures/search", agent=agent, trigger=trigger)["procedures"][0]
    return found


def _success(attempts: dict[str, Attempt]) -> float:
    return sum(each.solved for each in attempts.values()) / len(attempts)
