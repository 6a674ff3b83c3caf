"""Which procedures are shown together: the best, no two the same, and one warning."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from retrieval.procedures.procedure import Procedure, ProcedureMatches, ShownCases, compose_procedures


def ids_of(*sources: int) -> frozenset[UUID]:
    return frozenset(UUID(int=source) for source in sources)


def procedure(
    similarity: float, *sources: int, steps: str = "", level: str | None = "hybrid", **more: Any
) -> Procedure:
    fields: dict[str, Any] = {"uses": 0.0, "use_reward": 0.0, "occurrences": 1, **more}
    return Procedure(
        id=uuid4(),
        version=1,
        kind="failure_lesson" if fields.pop("warns", False) else "script",
        origin="rules",
        level=level,
        task_type="",
        trigger="t",
        domain="",
        record={"procedure_name": "n", "learned_procedure_steps": [steps or f"{similarity}"]},
        similarity=similarity,
        sources=ids_of(*sources),
        **fields,
    )


NO_CASES = ShownCases()


def similarities(found: list[Procedure], most: int = 10, cases: ShownCases = NO_CASES) -> list[float | None]:
    return [each.similarity for each in compose_procedures(ProcedureMatches(found), most, cases)]


def test_the_nearest_are_told_first_and_no_more_than_the_profile_wants():
    found = [procedure(0.5), procedure(0.9), procedure(0.7)]
    assert similarities(found) == [0.9, 0.7, 0.5]
    assert similarities(found, 2) == [0.9, 0.7]
    assert similarities(found, 0) == []


def served(*sources: int, similarities: Sequence[float] = ()) -> ShownCases:
    """Cases in this order."""
    return ShownCases({UUID(int=source): place for place, source in enumerate(sources)}, similarities)


def test_they_follow_the_cases_that_taught_them():
    found = [procedure(0.9, 2), procedure(0.5, 7, 1), procedure(0.8, 3)]
    assert similarities(found, cases=served(1, 2, 3)) == [0.5, 0.9, 0.8]
    assert similarities(found, cases=served(3, 1, 2)) == [0.8, 0.5, 0.9]


def test_none_is_told_above_the_best_case_if_that_taught_none():
    assert similarities([procedure(0.9, 2)], cases=served(1, 2)) == []
    assert similarities([procedure(0.9, 1), procedure(0.8, 3)], cases=served(1, 2, 3)) == [0.9, 0.8]
    assert similarities([procedure(0.9, 2, warns=True)], cases=served(1, 2)) == [0.9], "a warning has no place"
    wanted = procedure(0.9, 2, pinned=True)
    assert similarities([wanted, procedure(0.8, 3)], cases=served(1, 2, 3)) == [0.9], "a person wants it"


def test_one_whose_runs_are_no_candidates_comes_before_the_cases_that_are_farther():
    gone, here = procedure(0.9, 8), procedure(0.5, 1)
    assert similarities([here, gone], cases=served(1, similarities=[0.4])) == [0.9, 0.5]
    assert similarities([here, gone], cases=served(1, similarities=[0.95])) == [0.5, 0.9]
    assert similarities([gone], cases=served(1, 2, similarities=[0.95, 0.92])) == []


def test_parts_of_a_sentence_are_no_tasks_if_a_procedure_is_much_nearer_to_the_whole():
    whole, far, near = procedure(0.9, 1), procedure(0.5, 2), procedure(0.7, 1)
    near = replace(near, id=whole.id)
    booking = ProcedureMatches([whole], of_parts=[[far], [near]])
    assert [each.similarity for each in compose_procedures(booking, 4, NO_CASES)] == [0.9]
    two_tasks = ProcedureMatches([replace(whole, similarity=0.52)], of_parts=[[far], [near]])
    assert [each.similarity for each in compose_procedures(two_tasks, 4, NO_CASES)] == [0.5, 0.7]


def test_a_part_counts_if_a_case_on_the_slate_taught_its_procedure():
    greeting, task = procedure(0.6, 2), procedure(0.8, 1)
    parts = ProcedureMatches(of_parts=[[greeting], [task]])
    both, one = (replace(served(1, 2), slate=ids_of(*slate)) for slate in ([1, 2], [1]))
    assert [each.id for each in compose_procedures(parts, 4, both)] == [greeting.id, task.id]
    assert [each.id for each in compose_procedures(parts, 4, one)] == [task.id]


def test_no_two_say_the_same():
    assert similarities([procedure(0.9, 1, 2), procedure(0.8, 2, 3), procedure(0.7, 3)]) == [0.9, 0.7]
    assert similarities([procedure(0.9, 1, steps="A  step"), procedure(0.8, 2, steps="a step")]) == [0.9]


def test_of_a_fix_and_the_script_of_its_run_the_fix_is_told():
    assert similarities([procedure(0.9, 1, 2), procedure(0.8, 2, level=None), procedure(0.7, 3)]) == [0.8, 0.7]


def test_a_fix_of_another_run_does_not_come_before_a_nearer_script():
    assert similarities([procedure(0.95, 1), procedure(0.5, 2, level=None)], 1) == [0.95]
    assert similarities([procedure(0.9, 1, 2), procedure(0.8, 3, 2, level=None)], cases=served(1, 4, 3)) == [0.9]


def test_a_single_part_is_not_told_if_the_first_case_taught_none_that_fits():
    held = procedure(0.9, 2)
    part = ProcedureMatches([held], of_parts=[[replace(held, similarity=0.6)], []])
    assert compose_procedures(part, 4, replace(served(1, 2), slate=ids_of(1, 2))) == []


def test_there_is_at_most_one_warning():
    found = [procedure(0.9, warns=True), procedure(0.8, warns=True), procedure(0.7)]
    assert similarities(found) == [0.9, 0.7]
    assert similarities(found, cases=ShownCases(warn=True)) == [0.7]


def test_one_that_was_used_in_vain_falls_behind_one_that_helps():
    assert similarities([procedure(0.8, uses=10, use_reward=0), procedure(0.6)]) == [0.6, 0.8]
    assert similarities([procedure(0.7, uses=10, use_reward=10), procedure(0.75)]) == [0.7, 0.75]


def test_those_with_one_trigger_are_alternatives_to_the_best_of_them_but_for_warnings():
    found = [procedure(0.9), procedure(0.8, warns=True), procedure(0.7), procedure(0.6)]
    best, warning, second, third = compose_procedures(ProcedureMatches(found), 9, ShownCases())
    assert (best.alternative_to, warning.alternative_to) == (None, None)
    assert (second.alternative_to, third.alternative_to) == (best.id, best.id)


def test_unproven_ones_wait_in_quarantine():
    flood = [procedure(0.9 - number / 1000, occurrences=40) for number in range(40)]
    proven, pinned = procedure(0.6, proven_runs=1), procedure(0.7, pinned=True)
    held = compose_procedures(ProcedureMatches([*flood, pinned, proven]), 10, ShownCases(), quarantine=True)
    assert [each.similarity for each in held] == [0.7, 0.6]
    assert compose_procedures(ProcedureMatches(flood), 10, ShownCases(), quarantine=True) == []
    assert similarities([*flood, pinned], 2) == [0.9, 0.899]


def test_a_plan_is_told_unless_a_shown_case_tells_it():
    planned = procedure(0.9, 1)
    planned.record["plan"] = ["ask", "act"]
    assert planned.guidance().plan == ["ask", "act"]
    assert planned.guidance({UUID(int=2): ["ask"]}).plan == ["ask", "act"]
    assert planned.guidance({UUID(int=1): ["ask"]}).plan == []


CALLS = ["Call drain with host=<id> (for example web-1).", "Call restart with host=<id> (for example web-1)."]
ACTIONS = ["drain(host=web-1)", "restart(host=web-1)"]


@pytest.mark.parametrize(
    ("steps", "actions", "more", "case"),
    [
        (CALLS, ACTIONS, {}, 2),
        (["mix flour <number> (for example: mix flour 500)", "bake"], ["mix flour 500", "bake"], {}, 2),
        (CALLS, ACTIONS[:1], {}, None),
        (CALLS, [*ACTIONS, "start(host=web-1)"], {}, None),
        (CALLS, ACTIONS[::-1], {}, None),
        (CALLS, ["take it off the list", "start it again"], {}, None),
        (CALLS, ACTIONS, {"level": "abstract"}, None),
        (CALLS, ACTIONS, {"level": None}, None),
        (CALLS, ACTIONS, {"origin": "llm"}, None),
        (CALLS, ACTIONS, {"kind": "revision"}, None),
    ],
)
def test_a_script_names_the_case_that_taught_it_if_the_plan_has_the_same_calls(
    steps: list[str], actions: list[str], more: dict[str, Any], case: int | None
):
    script = replace(procedure(0.9, 1), record={"procedure_name": "n", "learned_procedure_steps": steps}, **more)
    assert script.guidance({UUID(int=2): actions, UUID(int=1): actions}).case == case
    assert script.guidance({UUID(int=2): actions}).case is None, "another run"


HOLLOW = "Check the arguments before the call; what put it right: command: another <word> was right."


def fix(*steps: str, similarity: float = 0.9) -> Procedure:
    made = procedure(similarity, level=None)
    made.record["learned_procedure_steps"] = [*steps]
    return made


def test_a_fix_that_does_not_say_what_to_do_is_left_out():
    told = "Check the arguments before the call; what put it right: command: `a -o <word>` instead of `a <word>`."
    both = HOLLOW.replace(".", "; note: another <string> was right.")
    as_a_whole = HOLLOW.replace("command: another <word> was right", "the arguments as a whole")
    hollow = [fix("Call bash with command=`a <word>`.", each) for each in (HOLLOW, both, as_a_whole)]
    assert similarities([*hollow, fix("Call bash.", told, similarity=0.5)]) == [0.5]
    assert similarities([fix("Call login.", "Call bash.", HOLLOW)]) == [0.9], "it names a call before"
    assert similarities([procedure(0.9, steps=HOLLOW)]) == [0.9], "it is no fix"


def test_a_step_of_any_text_is_read_to_its_end():
    hostile = "what put it right: " + "a: another b was right, …" * 80  # a search that goes back never ends
    assert similarities([fix("Call bash.", hostile + "x")]) == [0.9]


def test_the_script_of_a_run_is_told_where_its_fix_does_not_say_what_to_do():
    hollow, script = replace(fix("Call bash.", HOLLOW), sources=frozenset([UUID(int=1)])), procedure(0.5, 1)
    assert similarities([hollow, script]) == [0.5]


def test_a_warning_from_a_run_that_is_told_as_one_that_went_well_is_left_out():
    warning = ProcedureMatches([procedure(0.9, 1, warns=True)])
    assert compose_procedures(warning, 4, ShownCases(went_well=frozenset([UUID(int=1)]))) == []
    assert compose_procedures(warning, 4, ShownCases(went_well=frozenset([UUID(int=2)]))) != []


def test_a_warning_is_told_if_a_plan_on_the_slate_calls_a_tool_that_it_names_or_no_plan_names_a_tool():
    step = "Do not repeat shop.cancel_order with arguments of the form id=<number> once it answers with a timeout."
    warning, twice = (procedure(0.9, warns=True, steps=each) for each in (step, "Never call (`get_order`) twice."))
    for tools, told in (
        ([], [warning]),
        (["shop.cancel_order", "pay"], [warning]),
        (["get_order"], [twice]),
        (["cancel_order", "order", "shop"], []),
    ):
        shown = compose_procedures(ProcedureMatches([warning, twice]), 4, ShownCases(tools=frozenset(tools)))
        assert shown == told, tools


def test_a_warning_of_a_tool_that_no_plan_calls_is_told_if_a_person_or_the_query_wants_it():
    elsewhere = ShownCases(tools=frozenset(["pay"]))
    assert similarities([procedure(0.9, warns=True)], cases=elsewhere) == []
    assert similarities([procedure(0.9, warns=True, pinned=True)], cases=elsewhere) == [0.9]
    assert similarities([procedure(0.9, warns=True, names_tools=True)], cases=elsewhere) == [0.9]
    assert similarities([procedure(0.9)], cases=elsewhere) == [0.9], "it is no warning"
