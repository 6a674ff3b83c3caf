"""The plan of a run that brought none."""

from typing import Any

from writer.analysis.calls import StoredRun
from writer.analysis.state_changes import changes_state
from writer.retain.plan import MOST_STEPS, STEP_CHARS, CallMade, given_plan, plan_by_output, plan_by_status, plan_of


def call(tool: str, *, failed: bool = False, **arguments: Any) -> CallMade:
    return CallMade(tool, arguments, failed, changes_state(tool))


def run(*lines: str) -> list[str]:
    """Returns the plan of a run with one shell tool."""
    traces = [{"tool": "shell", "input": {"command": line}, "output": "ok", "status": "ok"} for line in lines]
    return plan_by_output(traces, StoredRun("", "success", traces, plan=plan_by_status(traces)))


def told(calls: list[tuple[str, dict[str, Any], str]], task: str = "") -> list[str]:
    """Returns the plan of a run by the outputs of its calls."""
    traces = [{"tool": tool, "input": given, "output": output, "status": "ok"} for tool, given, output in calls]
    return plan_by_output(traces, StoredRun(task, "success", traces, plan=plan_by_status(traces)))


def test_it_is_the_calls_that_changed_something_each_with_the_look_up_before_it():
    calls = [
        call("find_user", name="Ann"),
        call("get_order", id=7),
        call("cancel_order", failed=True, id=8),
        call("think", thought="the id was wrong"),
        call("cancel_order", id=7),
        call("get_user", id=1),
        call("get_order", id=9),
        call("send_mail", to="Ann"),
    ]
    assert plan_of(calls) == [
        "get_order(id=7)",
        "cancel_order(id=7)",
        "get_order(id=9)",
        "send_mail(to=Ann)",
    ]


def test_what_was_looked_up_after_the_last_change_is_in_the_plan():
    """It may be the answer, as where an agent only signs in and then looks something up."""
    calls = [
        call("find_user", name="Ann"),
        call("get_id"),
        call("sign_in", id=7),
        call("find_orders"),
        call("get_order"),
    ]
    assert plan_of(calls) == ["get_id()", "sign_in(id=7)", "find_orders()", "get_order()"]


def test_an_agent_with_one_shell_has_its_look_ups_left_out_as_an_agent_with_many_tools():
    looks = ["df -h", "ssh ada uptime", "cat /etc/app.conf"]
    assert run(*looks, "ls /srv", "systemctl stop app", *looks, "git status", "git push") == [
        "shell(command=systemctl stop app)",
        "shell(command=git push)",
    ]
    assert run(*looks) == [f"shell(command={line})" for line in looks]


def test_a_look_up_is_kept_that_showed_an_id_which_a_later_step_was_the_first_to_use():
    calls = [
        ("find_user", {"name": "Ann"}, '{"user": 31}'),
        ("get_weather", {"city": "Rome"}, "sunny"),
        ("get_orders", {"user": 31}, '{"orders": "w-700\\nw-701"}'),
        ("get_order", {"order": "w-701"}, '{"order": "w-701", "user": 31}'),
        ("get_news", {"topic": "sales"}, "w-701 and other orders"),
        ("cancel_order", {"order": "w-701"}, "done"),
    ]
    kept = ["find_user(name=Ann)", "get_orders(user=31)", "cancel_order(order=w-701)"]
    assert told(calls, "Cancel what Ann ordered last") == kept
    assert told(calls, "Cancel order w-701") == kept[2:]


def test_a_look_up_at_the_thing_that_the_next_call_changes_is_kept():
    calls = [
        ("get_order", {"order": 7}, "open"),
        ("cancel_order", {"order": 7}, "done"),
        ("read_file", {"path": "b.py"}, "x"),
        ("edit_file", {"path": "a.py", "old": "x", "new": "y"}, "done"),
    ]
    assert told(calls) == ["get_order(order=7)", "cancel_order(order=7)", "edit_file(path=a.py, old=x, new=y)"]


def test_a_page_that_was_left_for_another_is_kept_only_with_a_step_on_it():
    shop = "https://shop.example"
    calls = [
        ("browser_navigate", {"url": f"{shop}/help"}, "Help"),
        ("browser_read", {"selector": "body"}, "How to send an order back"),
        ("browser_navigate", {"url": f"{shop}/search"}, "Orders"),
        ("browser_read", {"selector": "#rows"}, "order w-701"),
        ("browser_navigate", {"url": f"{shop}/news"}, "News"),
        ("browser_navigate", {"url": f"{shop}/orders/w-701"}, "Order"),
        ("browser_click", {"selector": "#refund"}, "clicked"),
        ("browser_navigate", {"url": f"{shop}/state"}, "Refunded"),
    ]
    steps = [f"{tool}({', '.join(f'{name}={value}' for name, value in given.items())})" for tool, given, _ in calls]
    assert told(calls) == [*steps[2:4], *steps[5:]]
    assert told(calls[:6]) == steps[:6]  # nothing was changed


def test_where_nothing_was_changed_it_is_all_the_calls():
    assert plan_of([call("get_order", id=7), call("find_user", name="Ann")]) == [
        "get_order(id=7)",
        "find_user(name=Ann)",
    ]
    assert plan_of([]) == []


def test_a_call_that_failed_is_no_step_unless_every_call_failed():
    lost, worked = call("get_order", failed=True, id=1), call("get_order", id=7)
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


def test_an_edit_is_told_whole_where_its_other_arguments_are_short():
    old, new = "    return None", "    return [row for row in rows if row.total > limit]\n" * 6
    step = f"edit_file(path=src/rows.py, old={old}, new={new})"
    assert plan_of([call("edit_file", path="src/rows.py", old=old, new=new)]) == [step]
    (both,) = plan_of([call("edit_file", path="src/rows.py", old="a" * 900, new="b" * 900)])
    assert both.count("a") > 200
    assert both.count("b") > 200
    assert both.endswith("…)")


def test_a_plan_counts_as_given_unless_each_of_its_steps_is_a_call():
    traces = [
        {"tool": "cancel_order", "input": {"id": 7}, "output": "no", "status": "error"},
        {"tool": "refund_order", "input": {"id": 7}, "output": "done", "status": "ok"},
    ]
    assert given_plan(traces, ["refund_order(id=7)"]) == []
    assert given_plan(traces, ["cancel_order(id=7)", "refund_order(id=7)"]) == []  # as another version may have it
    assert given_plan(traces, ["refund_order(id=7)", "tell Ann"]) == ["refund_order(id=7)", "tell Ann"]
    assert given_plan([], ["refund the order"]) == ["refund the order"]
    assert plan_by_output(traces, StoredRun("", "success", traces, plan=["refund the order"])) == ["refund the order"]
