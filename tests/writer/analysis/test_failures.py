"""What failed in a run, and which later call put it right."""

import time
from typing import Any

import pytest

from tests.writer.runs import FAILED, analysed, asked, call


@pytest.mark.parametrize(
    ("between", "later", "kind"),
    [
        ([], "a", "same_args_retry"),
        ([], "b", "args_changed"),
        ([call("look")], "b", "args_changed_after_other_tool"),
        ([call("login")], "a", "same_args_after_other_tool"),
    ],
)
def test_the_kind_of_fix_says_what_changed_between_failure_and_success(between: list[Any], later: str, kind: str):
    analysis = analysed(call("find", {"id": "a"}, FAILED), *between, call("find", {"id": later}))
    assert analysis.kind == "learned_fix"
    (fix,) = analysis.recovered
    assert (fix.kind, fix.failed, fix.succeeded) == (kind, (0,), 1 + len(between))
    assert fix.between == tuple(each["tool"] for each in between)


@pytest.mark.parametrize(("later", "kind"), [(True, "args_changed"), (1.0, "same_args_retry")])
def test_a_number_that_became_true_was_changed_and_a_whole_number_with_a_point_was_not(later: object, kind: str):
    (fix,) = analysed(call("set", {"active": 1}, FAILED), call("set", {"active": later})).recovered
    assert (fix.kind, len(fix.differences)) == (kind, int(kind == "args_changed"))


def test_all_failures_of_a_tool_before_its_success_are_one():
    analysis = analysed(*(call("find", {"id": n}, FAILED) for n in range(3)), call("look"), call("find", {"id": 9}))
    assert [fix.failed for fix in analysis.recovered] == [(0, 1, 2)]


def test_what_was_called_between_two_failures_is_not_what_put_it_right():
    calls = [call("find", {"id": 1}, FAILED), call("look"), call("find", {"id": 2}, FAILED), call("find", {"id": 3})]
    assert [fix.kind for fix in analysed(*calls).recovered] == ["args_changed"]


def test_a_call_that_failed_between_is_not_what_put_it_right():
    change = {"booking": "A1B2C3", "day": "2025-03-04"}
    analysis = analysed(
        call("change_booking", change, "Error: refused"),
        call("cancel_booking", {"booking": "A1B2C3", "refund": "voucher"}, "Error: refused"),
        call("quote_change", change, "no fee"),
        call("change_booking", change, "done"),
    )
    assert analysis.lesson is not None
    assert [step.partition(" with")[0] for step in analysis.lesson.learned_procedure_steps] == [
        "Call quote_change.",
        "Call change_booking",
    ]


def test_a_change_after_which_the_same_call_fails_again_put_nothing_right():
    calls = [
        call("pour", {"into": "mug", "amount": "full"}, FAILED),
        call("pour", {"into": "mug", "amount": "half"}),
        call("pour", {"into": "mug", "amount": "full"}, FAILED),
        call("pour", {"into": "mug", "amount": "full", "slowly": True}),
    ]
    (fix,) = analysed(*calls).recovered
    assert (fix.failed, fix.succeeded) == ((0, 2), 3)
    assert not analysed(*calls[:3], outcome="failure").recovered


def test_an_alter_that_drops_something_does_not_put_another_alter_right():
    alter = "ALTER TABLE shops ALTER COLUMN size {};"
    typed, dropped, cast = (
        alter.format(how) for how in ("TYPE bigint", "DROP DEFAULT", "TYPE bigint USING size::int8")
    )
    (fix,) = analysed(call("sql", typed, FAILED), call("sql", dropped), call("sql", cast)).recovered
    assert fix.succeeded == 2
    again = [
        call("sql", "ALTER TABLE shops REMOVE COLUMN size", FAILED),
        call("sql", "ALTER TABLE shops DROP COLUMN size"),
    ]
    assert len(analysed(*again).recovered) == 1


def test_failures_of_two_tools_are_told_apart():
    analysis = analysed(call("a", 1, FAILED), call("b", 1, FAILED), call("b", 2), call("a", 1))
    assert [(fix.tool, fix.kind) for fix in analysis.recovered] == [
        ("b", "args_changed"),
        ("a", "same_args_after_other_tool"),
    ]


def test_a_statement_for_another_goal_does_not_put_a_statement_right():
    broken, right = "ALTER TABLE users ADD COLUMN last_name;", "ALTER TABLE users ADD COLUMN last_name text;"
    look = call("sql", {"statement": "SELECT * FROM information_schema.columns WHERE table_name = 'users'"}, [["id"]])
    failing = call("sql", {"statement": broken}, 'syntax error at or near ";"', "error")
    assert analysed(failing, look, outcome="failure").kind == "failure_lesson"
    (fix,) = analysed(failing, look, call("sql", {"statement": right})).recovered
    assert (fix.succeeded, fix.kind) == (2, "args_changed_after_other_tool")


NO_ADMIN = "Error: user is an admin and cannot be deleted"


@pytest.mark.parametrize(
    ("failing", "later", "task"),
    [
        (call("delete_user", {"user_id": "u1", "force": False}, NO_ADMIN), {"user_id": "u2", "force": True}, "tidy up"),
        (call("get_order", {"order_id": "#W1"}, "Error: not found"), {"order_id": "#W2"}, "Check orders W1 and W2"),
        (call("get_order", {"id": 1}, "Error: not found"), {"id": 2}, "Check orders 1 and 2"),
        (call("mail", {"to": ["ann@x.org"]}, "Error: full"), {"to": ["bob@x.org"]}, "Mail Ann and Bob"),
        (
            call("look_up", {"entity": "Barack Obama"}, "Error: not found"),
            {"entity": "Angela Merkel"},
            "Obama, Merkel?",
        ),
    ],
)
def test_a_call_for_another_object_does_not_put_a_call_right(failing: Any, later: Any, task: str):
    tool, given = failing["tool"], failing["input"]
    assert analysed(failing, call(tool, later), task=task).kind == "failure_lesson"
    (fix,) = analysed(failing, call(tool, later), call(tool, given | {"force": True}), task=task).recovered
    assert (fix.failed, fix.succeeded) == ((0,), 2)


@pytest.mark.parametrize(
    ("wrong", "right", "task"),
    [
        ({"order_id": "W2378156"}, {"order_id": "#W2378156"}, "Refund #W2378156"),
        ({"package": "reqeusts"}, {"package": "requests"}, "Install requests"),
        ({"selector": "#book"}, {"selector": "#reserve-button"}, "Book a table"),
        ({"column": "month"}, {"column": "Month"}, "Plot the sales of each month"),
        ({"path": "src/utils.py"}, {"path": "src/app/utils.py"}, "Fix utils.py in the app"),
        ({"from": "Ulm", "to": "Bonn"}, {"from": "Bonn", "to": "Ulm"}, "A train from Bonn to Ulm"),
        (
            {"payment_method_id": "gift_card_71"},
            {"payment_method_id": "credit_card_8"},
            "Use my gift card or credit card",
        ),
        ({"users": ["u1", "u2"]}, {"users": ["u2"]}, "Invite u1 and u2"),
    ],
)
def test_a_corrected_name_of_the_same_object_puts_a_call_right(wrong: Any, right: Any, task: str):
    assert analysed(call("act", wrong, "Error: not found"), call("act", right), task=task).kind == "learned_fix"


def test_an_empty_answer_counts_only_where_another_spelling_of_the_same_found_something():
    first = call("search", {"name": "O'Neill"}, [])
    assert [fix.evidence for fix in analysed(first, call("search", {"name": "oneill"}, [1])).recovered] == [
        "empty_output"
    ]
    assert analysed(first, call("search", {"name": "Smith"}, [1])).kind is None


def test_a_complaint_makes_the_call_before_its_correction_a_failure():
    calls = [call("get_user"), call("set_city", {"city": "Ulm"}), call("get_user"), call("set_city", {"city": "Köln"})]
    analysis = analysed(*calls, turns=asked("move me", "That is wrong"))
    (fix,) = analysis.recovered
    assert (fix.evidence, fix.failed, fix.succeeded) == ("complaint", (1,), 3)
    assert analysed(*calls, turns=asked("move me", "thanks")).kind is None
    assert analysed(*calls, turns=asked("move me", "That is wrong"), outcome="failure").kind is None


def test_another_wish_beside_a_fault_of_the_users_things_is_no_correction():
    calls = [call("set_alarm", {"time": "07:00"}), call("set_alarm", {"time": "08:00"})]
    said = "My heating is still not working, by the way. Also set another alarm for 8"
    assert analysed(*calls, turns=asked("Set an alarm", said)).kind is None


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ({"state": "Ohio"}, {"state": "OH"}),
        ({"state": "Texas"}, {"state": "TX"}),
        ({"q": "st paul"}, {"q": "St. Paul"}),
    ],
)
@pytest.mark.parametrize("nothing", [[], {"resourceType": "Bundle", "total": 0, "link": [{"url": "x"}]}])
def test_an_empty_answer_is_put_right_by_an_abbreviation_as_well(wrong: Any, right: Any, nothing: Any):
    (fix,) = analysed(call("find_stores", wrong, nothing), call("find_stores", right, {"total": 2})).recovered
    assert (fix.evidence, fix.kind, fix.failed) == ("empty_output", "args_changed", (0,))


@pytest.mark.parametrize(("first", "second"), [("Ohio", "Oregon"), ("Texas", "Tx Rangers"), ("Anna", "A"), (7, 70)])
def test_a_search_for_something_else_puts_no_empty_answer_right(first: Any, second: Any):
    assert analysed(call("find", {"q": first}, []), call("find", {"q": second}, [1])).kind is None


@pytest.mark.parametrize(
    ("failing", "working"),
    [
        (call("find_user_by_email", {"email": "a@b.org"}, FAILED), call("find_user_by_name", {"name": "Ada"}, "u-7")),
        (
            call("fetch_page", {"url": "https://a.org/x"}, "503 Service Unavailable"),
            call("get_cached", {"at": "https://a.org/x"}),
        ),
        (
            call("mail", {"to": "a@b.org", "text": "hello"}, FAILED),
            call("send", {"address": "a@b.org", "body": "hello"}),
        ),
    ],
)
def test_a_failure_is_put_right_by_another_tool_that_does_the_same(failing: Any, working: Any):
    analysis = analysed(failing, call("think"), working)
    (fix,) = analysis.recovered
    assert (fix.tool, fix.kind, fix.failed, fix.succeeded) == (failing["tool"], "other_tool", (0,), 2)
    assert analysis.lost == ()
    assert analysis.lesson is not None
    assert working["tool"] in analysis.lesson.successful_intervention
    assert any(working["tool"] in step for step in analysis.lesson.learned_procedure_steps)
    assert analysed(failing, working, outcome="failure").kind == "failure_lesson"


@pytest.mark.parametrize(
    "other",
    [
        call("get_user_details", {"id": "u-7"}),
        call("delete_page", {"url": "https://a.org/x"}),
        call("get_cached", {"at": "https://a.org/y"}),
        call("get_cached", {"at": "https://a.org/x"}, []),
    ],
)
def test_a_tool_that_does_something_else_puts_nothing_right(other: Any):
    failing = call("get_page", {"url": "https://a.org/x"}, FAILED)
    assert analysed(failing, other).kind == "failure_lesson"


def test_a_call_that_had_worked_before_the_failure_did_not_put_it_right():
    publish, tell = (call(tool, {"document": "the roadmap"}, "done") for tool in ("publish", "notify_team"))
    failing = call("mute_thread", {"document": "the roadmap"}, FAILED)
    (fix,) = analysed(publish, failing, publish, tell).recovered
    assert (fix.kind, fix.succeeded) == ("other_tool", 3)


def test_a_tool_that_an_output_named_in_an_order_puts_nothing_right():
    failing = call("mail", {"to": "a@b.org", "text": "hello"}, "Error: failed. Instead call wire_mail")
    assert analysed(failing, call("wire_mail", {"to": "a@b.org", "text": "hello"})).kind == "failure_lesson"


@pytest.mark.parametrize(
    "said",
    ["'Smyth' is wrong", "It should be “Smith”, not “Smyth”", "the name Smyth is not correct", "Not 'Smyth', 'Smith'!"],
)
def test_a_complaint_about_a_string_is_about_the_call_that_wrote_it(said: str):
    calls = [call("set_name", "Smyth"), call("set_city", "Ulm"), call("set_name", "Smith"), call("set_city", "Bonn")]
    (fix,) = analysed(*calls, turns=asked("Make me a Smith in Ulm", said)).recovered
    assert (fix.tool, fix.evidence, fix.failed, fix.succeeded) == ("set_name", "complaint", (0,), 2)


def shell(command: str, output: Any = "done", status: str = "ok") -> dict[str, Any]:
    return call("bash", {"command": command}, output, status)


@pytest.mark.parametrize("other", ["ls -la", "cat report.py", "git status", "echo done"])
def test_no_later_command_for_another_goal_puts_a_command_right(other: str):
    missing = "bash: line 1: pytest: command not found"
    assert analysed(shell("pytest", missing, "error"), shell(other)).kind == "failure_lesson"
    (fix,) = analysed(shell("pytest", missing), shell(other), shell("python -m pytest", "3 passed")).recovered
    assert (fix.failed, fix.succeeded) == ((0,), 2)


def test_a_file_that_could_not_be_written_is_not_put_right_by_running_it():
    write = shell("cat <<EOF > bin/run.sh\nmake\nEOF", "bash: bin/run.sh: No such file or directory", "error")
    assert analysed(write, shell("bash bin/run.sh", "built")).kind == "failure_lesson"


@pytest.mark.parametrize("status", ["ok", "error"])
def test_silence_is_a_success_of_a_command_that_has_shown_an_error(status: str):
    failing = shell("mkdir a/b", "mkdir: cannot create directory 'a/b': No such file or directory", status)
    assert analysed(failing, shell("mkdir -p a/b", "")).kind == "learned_fix"
    assert analysed(shell("mkdir a", ""), shell("mkdir -p a", "made")).kind is None


def test_an_answer_that_is_as_bad_as_before_puts_nothing_right():
    first = call("speed_test", {}, "Speed test failed: no connection", "error")
    assert analysed(first, call("speed_test", {}, "Very Poor")).kind == "failure_lesson"
    assert analysed(first, call("speed_test", {}, "275 Mbps (Excellent)")).kind == "learned_fix"


def test_an_empty_bundle_counts_where_a_corrected_name_found_something():
    first = call("search", {"name": "Jon Smith"}, '{"total": 0, "results": []}')
    (fix,) = analysed(first, call("search", {"name": "John Smith"}, '{"total": 1, "results": [7]}')).recovered
    assert fix.evidence == "empty_output"
    assert analysed(first, call("search", {"name": "Mary Jones"}, '{"total": 1, "results": [7]}')).kind is None


def test_of_programs_the_one_with_most_of_the_failed_ones_words_puts_it_right_and_no_look_up():
    def cell(code: str, output: str) -> dict[str, Any]:
        return call("python", {"code": code}, output)

    failing = cell("sales.groupby('Region')['total'].sum()", "KeyError: 'Region'")
    look_up = cell("sales.columns", "Index(['region', 'total'])")
    right = cell("sales.groupby('region')['total'].sum()", "North 3")
    analysis = analysed(failing, look_up, right)
    (fix,) = analysis.recovered
    assert (fix.succeeded, fix.between) == (2, ("python",))
    assert analysis.lesson is not None
    assert "Call python." not in analysis.lesson.learned_procedure_steps  # it says nothing
    assert analysed(failing, look_up).kind == "failure_lesson"


def test_a_text_with_a_deep_indent_is_read_as_another_is():
    [failure] = analysed(call("edit", " " * 50 + "a", FAILED), call("edit", " " * 50 + "b")).recovered
    assert failure.kind == "args_changed"


def test_thousands_of_failures_that_the_task_wanted_take_a_moment():
    calls = [call(f"t{n}", {"n": n}, FAILED) for n in range(10_000)]
    started = time.process_time()
    assert analysed(*calls, task="Check that each call fails").lesson is None
    assert time.process_time() - started < 4  # a quadratic search takes 10 s
