"""In the world of a shell one command line works for each task, errors are the programs', and nothing leaves it."""

import random
from dataclasses import replace
from pathlib import Path

import pytest

from bench.failures.kinds import Kind, Task, fill
from bench.failures.shell import ShellWorld

KINDS = ShellWorld.kinds


@pytest.fixture
def world(tmp_path: Path) -> ShellWorld:
    return ShellWorld(tmp_path / "scratch")


def tasks_of(kind: Kind) -> list[Task]:
    """Returns a task for each way that may work; one for a kind that cannot be done."""
    rng = random.Random(kind.key)
    values = {key: rng.choice(pool) for key, pool in ShellWorld.values.items()} | dict(rng.choice(ShellWorld.names))
    return [fill(kind, way, values, kind.wordings[0], "task") for way in kind.working or [None]]


def test_there_are_eight_kinds_and_one_of_them_cannot_be_done():
    assert len(KINDS) >= 8
    assert [kind.key for kind in KINDS if not kind.working] == ["read_only"]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.key)
def test_of_the_ways_to_do_a_task_only_its_own_works(kind: Kind, world: ShellWorld):
    for task in tasks_of(kind):
        done = [title for title, act in task.acts.items() if world.attempt(task, act).done]
        assert done == [task.works] * bool(task.works)


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("unpack", "gzip: stdin: not in gzip format\ntar: Child returned status 1"),
        ("search", "grep: {d}: Is a directory\nexit status 2"),
        ("run", "./{d}/job: Permission denied\nexit status 126"),
        ("port", "json.decoder.JSONDecodeError: "),
        ("backup", "backup: unrecognized arguments: {d} --to "),
        ("copy", "cp: -r not specified; omitting directory '{d}'"),
        ("replace", "sed: -e expression #1, char "),
        ("publish", "mkdir: cannot create directory 'site': File exists"),
        ("convert", "iconv: illegal input sequence at position "),
        ("read_only", "archive: read-only until further notice\nexit status 75"),
    ],
)
def test_errors_are_those_of_the_programs(kind: str, error: str, world: ShellWorld):
    tasks = next(tasks_of(each) for each in KINDS if each.key == kind)
    wanted = error.replace("{d}", next(name["d"] for name in world.names if name["d"] in tasks[0].text))
    assert any(wanted in world.attempt(task, act).output for task in tasks for act in task.acts.values())


def test_an_attempt_leaves_nothing_beside_its_folder_nor_for_the_next(world: ShellWorld, tmp_path: Path):
    (tmp_path / "beside").write_text("as it was")
    for kind in KINDS[::4]:
        (task, *_) = tasks_of(kind)
        for act in task.acts.values():
            world.attempt(task, act)
            first = world.attempt(task, act)
            assert world.attempt(task, act) == first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["beside", "scratch"]
    assert [path.name for path in (tmp_path / "scratch").iterdir()] == ["work"]
    assert (tmp_path / "beside").read_text() == "as it was"


@pytest.mark.parametrize(
    "act",
    ["cat /etc/passwd", "cp a ../b", "touch ~/x", "echo >/tmp/x", "ls $HOME", "cat '/etc/passwd'", "x=/etc; ls $x"],
)
def test_a_command_line_that_may_leave_its_folder_is_refused(act: str, world: ShellWorld, tmp_path: Path):
    (task, *_) = tasks_of(KINDS[0])
    with pytest.raises(ValueError, match="leave"):
        world.attempt(task, act)
    assert not list(tmp_path.iterdir())


def test_a_command_line_that_does_not_end_is_killed(tmp_path: Path):
    world = ShellWorld(tmp_path, timeout_s=1)
    (task, *_) = tasks_of(KINDS[0])
    result = world.attempt(replace(task, setup="true"), "sleep 60 & sleep 60")
    assert not result.done
    assert "exit status" in result.output
