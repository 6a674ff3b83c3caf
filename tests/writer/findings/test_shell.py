"""Command lines: what they read and search, and above all what they may have changed."""

import pytest

from writer.findings.aspects import MOST_LINES
from writer.findings.shell import aspects_of_line


def shown(line: str) -> list[tuple[str, str]]:
    return [(each.kind, each.path) for each in aspects_of_line(line) if each.shows]


@pytest.mark.parametrize(
    ("line", "path", "lines"),
    [
        ("cat a.py", "a.py", None),
        ("cat -n 'my file.py'", "my file.py", None),
        ("cd /repo && cat lib/a.py 2>/dev/null", "/repo/lib/a.py", None),
        ("sed -n '3,9p' a.py", "a.py", (3, 9)),
        ("sed -n '3,$p' a.py", "a.py", (3, MOST_LINES)),
        ("sed -n '3,9p;7q' a.py", "a.py", (3, 7)),
        ("sed -n '3,$p;9q' a.py", "a.py", (3, 9)),
        ("head a.py", "a.py", (1, 10)),
        ("head -n 40 a.py", "a.py", (1, 40)),
        ("cat a.py | head -20", "a.py", (1, 20)),
        ("bash -lc 'cat a.py'", "a.py", None),
        ("FOO=1 timeout 5 cat a.py", "a.py", None),
        ("cat < a.py", "a.py", None),
        ("< a.py head -n 40", "a.py", (1, 40)),
    ],
)
def test_a_line_that_shows_one_file_reads_it(line: str, path: str, lines: tuple[int, int] | None):
    (found,) = [each for each in aspects_of_line(line) if each.shows]
    assert (found.kind, found.path, found.lines) == ("read", path, lines)


@pytest.mark.parametrize(
    "line", ["cat a.py b.py", "cat a.py; cat b.py", "cat *.py", "cat $F", "echo start && cat a.py", "cat a.py | wc -l"]
)
def test_what_several_commands_say_together_is_no_reading_of_a_file(line: str):
    assert "read" not in {kind for kind, _ in shown(line)}


@pytest.mark.parametrize(
    ("line", "same"),
    [
        ("grep -rn foo app/", 'grep -nr "foo" ./app'),
        ("rg -n --color=never foo", "rg foo"),
        ("ls -la app", "ls -al app/"),
        ("find . -name '*.py'", 'find . -name "*.py"'),
    ],
)
def test_a_search_put_in_other_words_is_the_same_search(line: str, same: str):
    (one,), (other,) = aspects_of_line(line), aspects_of_line(same)
    assert one.kind == other.kind == "search"
    assert one.query_key == other.query_key


@pytest.mark.parametrize(
    ("line", "other"),
    [
        ("grep foo app", "grep foo tests"),
        ("wc -l < a.py", "wc -l < b.py"),
        ("grep foo app", "grep -i foo app"),
        ("grep foo app", "grep -l foo app"),
        ("grep foo app", "grep -v foo app"),
        ("grep foo app", "grep Foo app"),
        ("grep foo app", "rg foo app"),
        ("grep -A 3 foo app", "grep -A 5 foo app"),
        ("grep foo app", "grep foo app | head -3"),
        ("grep foo app", "cd lib && grep foo app"),
        ("find . -name a", "find . -iname a"),
        ("ls app", "ls -R app"),
    ],
)
def test_a_search_for_something_else_is_another_search(line: str, other: str):
    one, two = aspects_of_line(line)[-1], aspects_of_line(other)[-1]
    assert one.query_key != two.query_key


@pytest.mark.parametrize("line", ["cat -A a.py", "cat -s a.py", "sed -n '9p;3q' a.py"])
def test_a_line_that_shows_a_file_in_another_form_does_not_read_it(line: str):
    assert shown(line) == [("other", "")]


@pytest.mark.parametrize(
    "line", ["ls -A app lib", "ls -t app lib", "tree -d app lib", "grep -T foo app lib", "fd -g '*.py' app lib"]
)
def test_a_search_looks_into_all_folders_behind_a_flag_that_takes_no_value(line: str):
    (found,) = aspects_of_line(line)
    assert found.place.keys >= {"begins app", "begins lib"}


ANYTHING = [
    "pytest -q",
    "make",
    'python -c \'open("a", "w")\'',
    "git checkout .",
    "git stash",
    "npm install",
    "ruff check --fix .",
    "find . -name '*.pyc' -delete",
    "find . -exec rm {} +",
    "ls | xargs rm",
    "sort -o a.txt a.txt",
    "sed 's/a/b/w out.txt' a.txt",
    "awk '{print > \"out\"}' a.txt",
    "git diff --output=x",
    "cat $(make list)",
    "cat `ls`",
    "rm *.py",
    "rm $FILE",
    "cp a.py ~/b.py",
    "sed -i -e 's/a/b/' a.py",
    "for f in a b; do rm $f; done",
    "cat a.py && 'unclosed",
    "source env.sh",
    "ls *.bak | xargs -I file rm file",
    "xargs -a file rm",
    "yq --inplace '.a = 1' a.yaml",
    "ruff check --add-noqa .",
    "sort -uo a.txt a.txt",
    "x" * 50_000,
    "yq -i '.a = 1' a.yaml",
    "cd $DIR && rm a.py",
    "cd - && rm a.py",
    "(cd lib; rm a.py); rm b.py",
    "cd lib & rm b.py",
    "tsc",
    "uniq a.txt b.txt",
    "go generate ./...",
    "tar xf a.tar",
    "sed $'-i' s/a/b/ f.py",
    "sed $FLAGS f.py",
    'rm lib/"a b".py',
    "rm a\\ b.py",
    "bash <<'E'\nrm a.py\nE",
    "python - <<'E'\nopen('a', 'w')\nE",
]


@pytest.mark.parametrize("line", ["grep foo . > found.txt", "grep foo . &> found.txt", "grep foo . >& found.txt"])
def test_a_search_whose_output_goes_to_a_file_shows_no_result(line: str):
    assert [(each.kind, each.path) for each in aspects_of_line(line)] == [("write", "found.txt"), ("other", "")]


@pytest.mark.parametrize("line", ["wc -l <<'E'\na\nE", "sort <<< 'b a'", "cat <<'E' | sort\nb\na\nE"])
def test_what_a_command_says_of_a_text_in_its_line_is_not_told_again(line: str):
    assert [each.repeatable for each in aspects_of_line(line)] == [False]


@pytest.mark.parametrize("line", ANYTHING)
def test_a_line_of_which_nobody_knows_what_it_changes_may_have_changed_anything(line: str):
    assert [each for each in aspects_of_line(line) if each.kind == "write" and not each.place.keys]


@pytest.mark.parametrize(
    ("line", "paths"),
    [
        ("echo x > a.txt", ["a.txt"]),
        ("echo x >> lib/a.txt && cat lib/a.txt", ["lib/a.txt"]),
        ("make_nothing() { :; } 2> err.txt; true", ["err.txt"]),
        ("rm -rf build dist", ["build", "dist"]),
        ("mv a.py b.py", ["a.py", "b.py"]),
        ("cp a.py b.py", ["b.py"]),
        ("mkdir -p x/y && touch x/y/z", ["x/y", "x/y/z"]),
        ("sed -i 's/a/b/' a.py b.py", ["a.py", "b.py"]),
        ("sed -'i' s/a/b/ a.py", ["a.py"]),
        ("grep foo a.py | tee out.txt", ["out.txt"]),
        ("cat > a.py <<'E'\nx > y\nE", ["a.py"]),
        ("cd lib && rm a.py", ["lib/a.py"]),
        ("(cd lib && rm a.py)", ["lib/a.py"]),
        ("grep foo . > found.txt 2>&1", ["found.txt"]),
        ("tee a.txt < b.txt", ["a.txt"]),
    ],
)
def test_a_line_changes_the_files_that_it_names(line: str, paths: list[str]):
    found = [each.path for each in aspects_of_line(line) if each.kind == "write" and each.path]
    assert found == paths


@pytest.mark.parametrize(
    "line",
    [
        "git status && git diff HEAD~1 -- a.py",
        "mypy app && ruff check .",
        "wc -l a.py | sort -n",
        "ls -la 2>/dev/null; pwd; date",
        "find . -type f | xargs grep -l foo",
        "test -f a.py && echo yes",
        "tsc --noEmit",
        "awk '{print $1}' a.txt",
        "cat a.py > /dev/null",
        "grep -n 'end$' a.py",
        "",
        "# nothing",
    ],
)
def test_a_line_that_only_looks_changes_nothing(line: str):
    assert not [each for each in aspects_of_line(line) if each.kind == "write"]


def test_what_is_read_before_it_is_changed_comes_before_the_change():
    assert [each.kind for each in aspects_of_line("cat a.py && echo x >> a.py")] == ["read", "write"]
    assert [each.kind for each in aspects_of_line("echo x >> a.py && cat a.py")] == ["write", "read"]
