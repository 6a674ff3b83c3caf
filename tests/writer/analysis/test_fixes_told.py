"""First fixes of 272 failed calls: whether they say what made the difference.

``data/fixes.jsonl`` has them, each written before its fix was seen: repairs of Java, runs in a terminal, edits of code
and configuration, SQL, HTTP, patterns and dates. ``tells`` are the parts of the difference that a fix must tell.
"""

from pathlib import Path
from uuid import uuid4

import orjson

from retrieval.advice.text import TOKENS, AdvisedFix, advice_text
from retrieval.tokens import count_tokens
from writer.analysis.calls import StoredRun
from writer.analysis.fixes import failures_of

CASES = [orjson.loads(line) for line in Path(__file__).with_name("data").joinpath("fixes.jsonl").open("rb")]


def first_fix(calls: list[list[object]]) -> tuple[str, str]:
    """The fix of the first failure, and the text of the advice; empty without a fix."""
    names = ("tool", "input", "output", "status")
    (failure, *_) = failures_of(StoredRun("a task", "success", [dict(zip(names, call, strict=True)) for call in calls]))
    if failure.fix is None:
        return "", ""
    parts = {name: getattr(failure.fix, name) for name in ("instead", "changes", "first", "dangerous")}
    told = AdvisedFix(parts, 1, uuid4(), 1.0, 1, 1, 0, 0, proven=True)
    return told.what, advice_text(failure.sign.tool, failure.error, [told], 0)[0]


def test_nine_of_ten_fixes_say_what_made_the_difference_and_each_fits_the_limit():
    told = [first_fix(case["calls"]) for case in CASES]
    concrete = [all(part in what for part in case["tells"]) for case, (what, _) in zip(CASES, told, strict=True)]
    assert all(text or not what for what, text in told)
    assert max(count_tokens(text) for _, text in told) <= TOKENS
    assert sum(concrete) >= 0.9 * len(CASES), f"{sum(concrete)} of {len(CASES)}"
