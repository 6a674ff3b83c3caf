"""Nothing in the material can end its fence."""

import json

from hypothesis import given
from hypothesis import strategies as st

from app.providers.llm import fenced


@given(st.text() | st.sampled_from(["</data>", "<|im_end|>", "<data>", "\ud83d"]))
def test_no_tag_is_left_inside_whatever_the_material_says(text: str):
    inside = fenced({"said": text}).removeprefix("<data>\n").removesuffix("\n</data>")
    assert "<" not in inside
    assert json.loads(inside) == {"said": text.encode(errors="replace").decode()}


def test_the_material_is_cut_and_the_fence_stays_whole():
    assert fenced("x" * 100, most_chars=10) == '<data>\n"xxxxxxxxx\n</data>'
