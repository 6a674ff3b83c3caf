"""What an answer without a result looks like, as text, as JSON and in the wrappings that tools put around it."""

import json
from typing import Any

import pytest

from writer.analysis.empty_output import is_empty

BUNDLE = {"resourceType": "Bundle", "type": "searchset", "total": 0, "link": [{"url": "Patient?x"}]}
ELASTIC = {"took": 3, "hits": {"total": {"value": 0, "relation": "eq"}, "hits": []}}


@pytest.mark.parametrize(
    "output",
    [
        "[]", "", {}, [], "No results found", "(0 rows)", "UPDATE 0", "DELETE 0;", BUNDLE, json.dumps(BUNDLE, indent=2),
        {"total": 0, "stores": []}, {"count": 0, "results": []}, {"results": []}, {"data": {"items": []}},
        [{"type": "text", "text": json.dumps(BUNDLE)}], {"content": [{"type": "text", "text": "[]"}]},
        {"results": 0, "count": 0},
    ],
)  # fmt: skip
def test_an_answer_that_there_is_nothing_is_empty(output: Any):
    assert is_empty(output)


@pytest.mark.parametrize(
    "output",
    [
        None, "one", "UPDATE 1", {"total": 1, "entry": [{}]}, {"total": 0, "entry": [{"id": 1}]},
        ELASTIC | {"hits": [1]},
        {"id": 7, "items": [1]}, {"order": {"lines": []}}, {"items": [], "user": {"name": "Ada"}}, {"total": False},
        {"total": 0.0}, '{"total": 0', {"result": ""}, {"stdout": "", "exit_code": 0}, [[]],
    ],
)  # fmt: skip
def test_an_answer_with_anything_in_it_is_not(output: Any):
    assert not is_empty(output)
