"""Whether two paths may be one place, however each is written."""

import pytest

from writer.errors import PathTooLong
from writer.findings.paths import ANYWHERE, FilePlace, place_of, tidy


def touch(one: FilePlace, other: FilePlace) -> bool:
    return bool(one.keys & other.marks or other.keys & one.marks)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a.py", "a.py"),
        ("/repo/src/a.py", "src/a.py"),
        ("/repo/src/a.py", "a.py"),
        ("/repo/src", "src/a.py"),
        ("/repo", "/repo/src/a.py"),
        ("lib/src", "src/a.py"),
        ("src", "/repo/src/a.py"),
    ],
)
def test_paths_that_may_be_one_place_or_one_in_the_other_touch(one: str, other: str):
    assert touch(place_of(one), place_of(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [("/repo/src/a.py", "/repo/lib/a.py"), ("src/a.py", "lib/a.py"), ("/src/a.py", "/repo/src"), ("a.py", "b.py")],
)
def test_paths_that_cannot_do_not(one: str, other: str):
    assert not touch(place_of(one), place_of(other))


@pytest.mark.parametrize("path", ["", "..", "../a.py", "/", "/".join("d" * 40)])
def test_a_path_that_says_too_little_may_lead_anywhere(path: str):
    assert place_of(tidy(path)) == ANYWHERE


def test_a_path_is_made_short_and_refused_where_it_is_none():
    assert tidy("./lib//x/../a.py") == "lib/a.py"
    assert tidy("a.py", "lib") == "lib/a.py"
    assert tidy("/a.py", "lib") == "/a.py"
    assert (tidy("."), tidy("file:///a.py"), tidy(r"lib\a.py")) == ("", "/a.py", "lib/a.py")
    with pytest.raises(PathTooLong):
        tidy("x" * 5_000)
