"""Which outputs of commands report an error."""

import pytest

from writer.analysis.calls import error_in_command


@pytest.mark.parametrize(
    ("line", "output"),
    [
        ("pytest -q", "bash: line 1: pytest: command not found"),
        ("pytest -q", "..F\n=== FAILURES ===\nassert 1 == 2\nFAILED test_a.py::test_a\n1 failed, 2 passed in 0.1s"),
        ("gcc a.c", "a.c: In function 'main':\na.c:3:5: error: expected ';'"),
        ("mvn test", "[INFO] Scanning\n[ERROR] COMPILATION ERROR :\n[INFO] BUILD FAILURE"),
        ("javac A.java", "A.java:3: error: cannot find symbol\n1 error"),
        ("make", "cc a.c\nmake: *** [Makefile:2: all] Error 1"),
        ("npm test", "> test\n> jest\n\nnpm ERR! Test failed."),
        ("git commit -m x", "On branch main\nnothing to commit, working tree clean"),
        ("sed -i s/a/b a.txt", "sed: -e expression #1, char 5: unterminated `s' command"),
        ("cat a.txt", "cat: a.txt: No such file or directory"),
        ("tsc", "src/a.ts(3,1): error TS2304: Cannot find name 'x'."),
        ("go build", "long " * 800 + "\nerror: linking failed"),
    ],
)
def test_an_error_is_found_in_whichever_line_it_stands(line: str, output: str):
    assert error_in_command(line, output)


@pytest.mark.parametrize(
    ("line", "output"),
    [
        ("pytest -q", "3 passed, 0 failed in 0.1s"),
        ("cat app.log", "Error: connection refused\nTraceback (most recent call last)\nValueError: x"),
        ("grep -rn error src", "src/a.py:3: error: not found"),
        ("ruff check --fix a.py", "Found 1 error (1 fixed, 0 remaining)."),
        ("make", "make: Nothing to be done for 'all'."),
        ("tar -cf a.tar /etc", "tar: Removing leading `/' from member names"),
        ("mypy app", "Success: no issues found in 3 source files"),
        ("mkdir a", ""),
        ("ls", None),
    ],
)
def test_what_only_speaks_of_errors_or_says_nothing_reports_none(line: str, output: object):
    assert error_in_command(line, output) is None


def test_the_error_of_a_traceback_is_its_exception_however_long_it_is():
    frames = '  File "a.py", line 1, in f\n    f()\n' * 100
    output = f"loading\nTraceback (most recent call last):\n{frames}json.decoder.JSONDecodeError: Expecting value"
    assert error_in_command("python3 a.py", output) == "json.decoder.JSONDecodeError: Expecting value"
