"""The walk over nested JSON: every value once, in order, as deep as it goes."""

from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from writer.nested import parts

leaf = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
values = st.recursive(leaf, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner))


def walked(value: object, *, keys: bool) -> list[object]:
    """The same by recursion."""
    inside: list[object] = []
    if isinstance(value, dict):
        for key, item in value.items():
            inside += ([key] if keys else []) + walked(item, keys=keys)
    elif isinstance(value, list):
        for item in value:
            inside += walked(item, keys=keys)
    return [value, *inside]


@given(values, st.booleans())
def test_every_value_comes_once_and_in_order(value: object, keys: bool):  # noqa: FBT001 - hypothesis draws it
    assert list(parts(value, keys=keys)) == walked(value, keys=keys)


def test_only_the_first_entries_of_what_is_wide_are_looked_at():
    assert list(parts([1, 2, 3], widest=2)) == [[1, 2, 3], 1, 2]
    wide = {"a": 1, "b": 2, "c": 3}
    assert list(parts(wide, keys=True, widest=1)) == [wide, "a", 1]


def test_depth_is_no_limit_and_whoever_has_seen_enough_stops():
    deep: object = "bottom"
    for _ in range(100_000):
        deep = [deep]
    assert list(islice(parts(deep), 3))[2:] == [deep[0][0]]  # type: ignore[index]
    *_, last = parts(deep)
    assert last == "bottom"
