"""What looks like an error, whatever the status of the call."""

from typing import Any

import pytest

from writer.analysis.calls import error_in_command
from writer.analysis.error_output import error_in


@pytest.mark.parametrize(
    "output",
    [
        "Error: user not found",
        "error: pathspec 'x' did not match",
        'ERROR:  relation "users" does not exist\nLINE 1: SELECT',
        'syntax error at or near ";"',
        'near "FORM": syntax error',
        "You have an error in your SQL syntax; check the manual",
        "ORA-00942: table or view does not exist",
        "Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'x'",
        "Some log\nTraceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'x'",
        "psycopg.errors.UndefinedTable: no", "ValueError: invalid literal",
        "requests.exceptions.ConnectionError: refused",
        "HTTP/1.1 404 Not Found", "404 Not Found", "503 Service Unavailable", "HTTP 500",
        "Request failed with status code 429",
        "<html><head><title>502 Bad Gateway</title>",
        "bash: foo: command not found", "cat: x: No such file or directory", "rm: x: Permission denied",
        "compiling\nfailed\nProcess exited with code 2", "exit code: 127",
        "User not found", "Unknown action update_reservation_insurance", "Invalid reason", "Access denied",
        '# var_0 = "Error: user not found"', '"Error: x"',
        {"error": "not found"}, {"error": {"code": 404, "message": "x"}}, {"errors": [{"message": "bad"}]},
        {"success": False}, {"ok": False, "message": "no"}, {"status": "error"}, {"status": 404, "title": "Not Found"},
        {"status": "failed", "message": "no seats"}, {"exit_code": 1, "stdout": ""}, {"detail": "Not found"},
        {"isError": True, "content": [{"type": "text", "text": "no"}]},
        {"content": [{"type": "text", "text": "Error executing tool find: no"}]},
        {"result": "Error: x"}, [{"type": "text", "text": "Error: x"}],
        '{"error": "not found"}', '{"success": false, "data": null}', '{"error": "cut off in the midd…[+900]',
        "Fehler: Benutzer nicht gefunden", "Benutzer nicht gefunden", "Error: usuario no encontrado",
        "No se encontró el usuario", "Erreur : utilisateur introuvable", "Utente non trovato", "Ошибка: нет",
        "Пользователь не найден", "错误:用户不存在", "エラー: 見つかりません", "Usuário não encontrado",
    ],
)  # fmt: skip
def test_an_error_is_told_from_the_output_alone(output: Any):
    assert error_in(output)


@pytest.mark.parametrize(
    "output",
    [
        None, "", "done", 0, True, [], {}, [1, 2], "ALTER TABLE", "0 errors, 3 warnings", "No errors found.",
        "error: none", {"error": None}, {"errors": []}, {"error": ""}, {"error": 0.03}, {"success": True}, {"ok": True},
        {"status": "ok"}, {"status": 200}, {"status": "failed"}, {"exit_code": 0}, {"code": 404},
        {"order": {"status": "delivered"}}, '{"error": null, "data": [1]}',
        "The article explains that an error was not found for years. " * 20,
        "Python error handling: a guide", "exited with code 0", '{"items": ["Error: quoted in data"]}',
        [{"level": "error", "line": 1}, {"level": "info"}] * 9,
    ],
)  # fmt: skip
def test_an_output_that_only_speaks_of_errors_is_none(output: Any):
    assert error_in(output) is None


@pytest.mark.parametrize(
    ("tool", "output"),
    [
        ("list_errors", '{"errors": [{"message": "x"}]}'), ("get_logs", "error: upstream timed out\n10:00 ok"),
        ("getErrors", {"errors": ["x"]}), ("get_monitor", {"url": "http://a", "status_code": 404}),
        ("get_job", {"id": "j1", "returncode": 1}), ("find_job", {"name": "nightly", "exit_code": 2}),
        ("get_payment", '{"id": "p1", "status": "failed", "description": "card declined"}'),
        ("get_order", {"order_id": "o1", "status": "error", "message": "the courier lost it"}),
        ("docs", "Fehler: so vermeiden Sie sie\nKapitel 1"), ("docs", "Errors: how to avoid them"),
    ],
)  # fmt: skip
def test_data_about_failures_is_no_error(tool: str, output: Any):
    assert error_in(output, tool) is None


@pytest.mark.parametrize(
    ("tool", "output"),
    [
        ("list_errors", {"errors": "no such service"}), ("list_orders", {"errors": [{"message": "bad"}]}),
        ("get_logs", "Error: no such service"), ("list_catalogs", "Error: bad page\nTry page 1"),
        ("get_monitor", {"status": 404, "title": "Not Found"}), ("get_job", {"error": "job not found", "id": "j1"}),
        ("get_page", {"url": "http://a", "status_code": 404, "body": "x"}), ("fetch", {"url": "a", "status": 500}),
        ("get_order", {"request_id": "r1", "status": "failed", "message": "no"}), ("get_job", {"exit_code": 1}),
        ("get_payment", {"id": "p1", "success": False}),
        ("charge_card", {"id": "ch_1", "status": "failed", "description": "card declined"}),
        ("run_job", {"id": "j1", "returncode": 1}), ("docs", "Fehler: so nicht erlaubt"),
    ],
)  # fmt: skip
def test_an_answer_that_the_call_itself_failed_is_an_error(tool: str, output: Any):
    assert error_in(output, tool)


FRAMES = '  File "/srv/app/module.py", line 12, in a_function\n    a_function(with_an_argument)\n'
TRACEBACK = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    read()\n    ^^^^^^\n'


@pytest.mark.parametrize(
    ("output", "error"),
    [
        (f"{TRACEBACK}KeyError: 'x'", "KeyError: 'x'"),
        (f"Some log\n{TRACEBACK}a.b.ParseError: no element\nexit status 1", "a.b.ParseError: no element"),
        (
            f"{TRACEBACK}KeyError: 'x'\n\nDuring handling of the above exception, another came:\n\n{TRACEBACK}E: no x",
            "E: no x",
        ),
        (f"{TRACEBACK}FileNotFoundError: No such file", "FileNotFoundError: No such file"),
        (TRACEBACK, "Traceback (most recent call last)"),
    ],
)
def test_the_error_of_a_traceback_is_the_exception_that_came_out(output: str, error: str):
    assert error_in(output) == error


@pytest.mark.parametrize("frames", [1, 90])
def test_the_error_of_a_traceback_in_a_field_is_its_exception(frames: int):
    trace = f"{TRACEBACK}{FRAMES * frames}KeyError: 'x'"
    texts = [{"type": "text", "text": trace}]
    outputs: list[object] = [{"error": trace}, {"ok": False, "message": trace}, {"isError": True, "content": texts}]
    assert [error_in(output) for output in (*outputs, texts)] == ["KeyError: 'x'"] * 4


@pytest.mark.parametrize("frames", [1, 40, 400])
def test_the_error_of_a_java_stack_trace_is_its_innermost_cause(frames: int):
    stack = "\tat shop.Refund.run(Refund.java:31)\n" * frames
    wrapped = f'Exception in thread "main" java.lang.RuntimeException: wrapped\n{stack}'
    assert error_in(wrapped) == wrapped[:300]
    inner = "java.sql.SQLException: no column price"
    output = f"{wrapped}Caused by: shop.NoRefund: no refund\n{stack}Caused by: {inner}\n{stack[:38]}\t... 3 more\n"
    assert error_in(output) == inner


@pytest.mark.parametrize("frames", range(20, 60))
@pytest.mark.parametrize("end", ["", f"\n\nDuring handling of that came:\n\n{TRACEBACK}{FRAMES * 3}OSError: no y"])
def test_the_error_of_a_traceback_of_any_length_is_its_exception(frames: int, end: str):
    output = f"{TRACEBACK}{FRAMES * frames}KeyError: 'x'{end}"
    error = "OSError: no y" if end else "KeyError: 'x'"
    assert (error_in(output), error_in_command("python a.py", output)) == (error, error)
