"""The plan of a run that brought none."""

from typing import Any

from writer.analysis.calls import calls_in
from writer.retain.plan import MOST_STEPS, STEP_CHARS, CallMade, given_plan, plan_of


def call(tool: str, *, failed: bool = False, **arguments: Any) -> Any:
    return {"tool": tool, "input": arguments, "failed": failed}


def test_it_is_the_calls_that_changed_something_each_with_the_look_up_before_it():
    calls = [
        call("find_user", name="Ann"),
        call("get_order", id=7),
        call("cancel_order", failed=True, id=8),
        call("think", thought="the id was wrong"),
        call("cancel_order", id=7),
        call("send_mail", to="Ann"),
        call("get_order", id=9),
    ]
    assert plan_of(calls) == ["get_order(id=7)", "cancel_order(id=7)", "send_mail(to=Ann)"]


def test_where_nothing_was_changed_it_is_all_the_calls():
    assert plan_of([call("get_order", id=7), call("find_user", name="Ann")]) == [
        "get_order(id=7)",
        "find_user(name=Ann)",
    ]
    assert plan_of([]) == []


def test_a_call_that_failed_is_no_step_unless_every_call_failed():
    lost, worked = CallMade(tool="get_order", input={"id": 1}, failed=True), call("get_order", id=7)
    assert plan_of([lost, worked]) == ["get_order(id=7)"]
    assert plan_of([lost]) == ["get_order(id=1)"]


def test_a_call_that_was_made_again_after_a_failure_is_one_step():
    quote, click = call("quote_change", id=7), call("click", button="next")
    lost = [quote, call("change_booking", failed=True, fee=75)]
    assert plan_of([*lost, *lost, quote, call("change_booking", fee=50)]) == [
        "quote_change(id=7)",
        "change_booking(fee=50)",
    ]
    assert plan_of([click, click]) == ["click(button=next)"] * 2


def test_it_is_short_and_what_a_database_can_store_whatever_was_called():
    calls = [call("write", text="\x00" * 3 + "x" * 9_999, number=2**70)] * 500
    plan = plan_of(calls)
    assert len(plan) == MOST_STEPS
    assert all(len(step) <= STEP_CHARS and "\x00" not in step for step in plan)
    assert "number=1180591620717411303424" in plan[0]


def test_a_statement_is_told_whole_where_it_is_the_only_argument():
    statement = "SELECT o.id, o.total, c.name FROM orders o JOIN customers c ON c.id = o.customer WHERE o.late"
    assert plan_of([call("run_sql", query=statement)]) == [f"run_sql(query={statement})"]


def test_a_plan_counts_as_given_unless_it_was_made_from_the_calls():
    traces = [
        {"tool": "cancel_order", "input": {"id": 7}, "output": "no", "status": "error"},
        {"tool": "refund_order", "input": {"id": 7}, "output": "done", "status": "ok"},
    ]
    calls = calls_in(traces)
    assert given_plan(traces, calls, ["refund_order(id=7)"]) == []
    assert given_plan(traces, calls, ["refund the order"]) == ["refund the order"]
    assert given_plan([], [], ["refund the order"]) == ["refund the order"]
