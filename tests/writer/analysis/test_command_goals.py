"""Which commands are after the same thing."""

import random
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from writer.analysis.command_goals import same_goal
from writer.analysis.commands import commands, with_lines

COUNT = "import csv\nrows = list(csv.reader(open('r.csv')))\nprint(len(rows))\n"


@pytest.mark.parametrize(
    ("failed", "later"),
    [
        ("pytest", ".venv/bin/python -m pytest -q"),
        ("pytest -q tests", "PYTHONPATH=src uv run pytest -q tests | tail -5"),
        ("cd app && npm test", "npm test --prefix app"),
        ("docker-compose up -d", "docker compose up -d"),
        ("bash -c 'make all'", "sudo make all"),
        ("git push", "git push -u origin main"),
        ("pip install pandas==1.0", "pip install 'pandas>=2.2'"),
        ("npm install left-pad@1.0.1", "npm install left-pad@2"),
        ("docker compose up", "docker compose -f deploy/compose.yaml -p shop up -d"),
        ("kubectl get pods", "kubectl -n shop get pods"),
        ("git commit -m 'a'", "git -c user.name=ci -C app commit -m 'a'"),
        ("git checkout topic", "git switch -c topic"),
        ("cat src/setings.py", "cat src/settings.py"),
        ("rg total src", "grep -rn total src"),
        ("python app/main.py", "python3 -m app.main"),
        ("echo a > x/y.txt", "mkdir -p x && echo a > x/y.txt"),
        (f"python - <<'EOF'\n{COUNT}EOF", f"python3 - <<'EOF'\n{COUNT.replace('r.csv', 'data/r.csv')}EOF"),
        (f"python3 <<EOF && echo ok\n{COUNT}EOF", f"cat <<EOF | python3\n{COUNT}print(1)\nEOF"),
        ("bash <<'EOF'\ncd app\npytest\nEOF", "cd app && python -m pytest"),
        (
            'python -c "import yaml; print(yaml.load(open(1)))"',
            'python3 -c "import yaml; print(yaml.safe_load(open(1)))"',
        ),
        ("psql db <<EOF\nselect name from user;\nEOF", 'psql db -c "select name from users;"'),
        ('sqlite3 a.db "select * from user"', 'sqlite3 a.db "select * from users"'),
    ],
)
def test_another_spelling_of_a_command_has_its_goal(failed: str, later: str):
    assert same_goal(failed, later)


@pytest.mark.parametrize(
    ("failed", "later"),
    [
        ("pytest -q", "ls"),
        ("python a_report.py", "cat a_report.py"),
        ("cat <<EOF > run.sh\nmake\nEOF", "bash run.sh"),
        ("echo 'print(1)' > run.py", "python run.py"),
        ("git push", "git status"),
        ("cat src/user.py", "cat src/order.py"),
        ("python one.py", "python seven.py"),
        ("pytest tests/test_1.py", "pytest tests/test_2.py"),
        ("pip install numpy", "pip install flask"),
        ("python -m app", "python --version"),
        ('sqlite3 a.db "select * from users"', "sqlite3 a.db < schema.sql"),
        ("make", "make_docs"),
        (f"python - <<'EOF'\n{COUNT}EOF", "python - <<'EOF'\nfrom pathlib import Path\nPath('b').unlink()\nEOF"),
        ("python3 <<EOF\nimport numpy\nEOF", "python3 <<EOF\nprint('hello there')\nEOF"),
        ('python -c "import numpy; print(1)"', "python -c \"open('x').write('some text')\""),
        ("bash <<'EOF'\nmake docs\nEOF", "bash <<'EOF'\ngit status\nEOF"),
    ],
)
def test_another_command_of_the_same_shell_has_another_goal(failed: str, later: str):
    assert not same_goal(failed, later)


def test_a_command_that_came_as_a_list_of_words_is_a_line():
    assert with_lines({"cmd": ["bash", "-lc", "make all"], "n": 1}) == {"cmd": "make all", "n": 1}
    assert with_lines({"command": ["git", "commit", "-m", "a b"]}) == {"command": "git commit -m 'a b'"}
    assert with_lines({"words": ["a"]}) == {"words": ["a"]}
    assert with_lines("ls") == "ls"


@pytest.mark.parametrize(
    ("line", "programs"),
    [
        ("make |<in.txt grep x", ["make", "grep"]),
        ("echo a >|b.txt", ["write"]),
        ("make 2>|log; ls <&3 -a", ["make", "ls"]),
    ],
)
def test_signs_without_a_space_between_hide_no_command(line: str, programs: list[str]):
    assert [each.program for each in commands(line)] == programs


@given(st.text(alphabet="ab -'\"\\|&;<>()\n$=./EOF"))
def test_any_line_is_taken_apart(line: str):
    assert isinstance(commands(line), list)
    assert same_goal(line, "ls") in {True, False}


def test_long_names_cost_a_run_of_failed_commands_little():
    letters = random.Random(1)
    names = ["".join(letters.choices("abcdefgh", k=190)) for _ in range(144)]
    lines = ["deploy " + " ".join(names[first : first + 12]) for first in range(0, 144, 12)]
    began = time.process_time()
    assert not any(same_goal(one, other) for one in lines for other in lines if one != other)
    assert time.process_time() - began < 5
