"""Findings of a run: what its steps found out is told once more, as long as nothing changed it, and to nobody else."""

import hashlib
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.service import AGENT, Service, User
from writer.rights.erase import erase
from writer.rights.export import export

SOURCE = "import os\n\nLIMIT = 3\n\n\nclass Case:\n    pass\n\n\ndef retain(run):\n    return os.name, run\n"
PATH = "bank/case.py"
QUESTIONS = Path(__file__).parent / "data" / "questions.txt"


def step(number: int, tool: str, given: Any, output: Any = "ok", **more: Any) -> dict[str, Any]:
    return {"number": number, "tool": tool, "input": given, "output": output, **more}


def read(number: int, path: str = PATH, output: str = SOURCE) -> dict[str, Any]:
    return step(number, "read_file", {"path": path}, output)


def bash(number: int, line: str, output: str = "") -> dict[str, Any]:
    return step(number, "bash", {"command": line}, output)


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def tell(user: User, run_id: str, *steps: dict[str, Any], agent: str = AGENT) -> None:
    body = {"agent": agent, "task": "mend the bank", "steps": list(steps)}
    answer = await user.http.post(f"/v1/runs/{run_id}/steps", json=body)
    assert answer.status_code == 200, answer.text


async def asked(user: User, run_id: str, tool: str, query: Any, **more: Any) -> dict[str, Any]:
    answer = await user.http.post(f"/v1/runs/{run_id}/known", json={"tool": tool, "query": query, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def why(user: User, run_id: str, tool: str, query: Any, **more: Any) -> str:
    answer = await asked(user, run_id, tool, query, **more)
    assert answer["known"] == (answer["why"] == "known")
    assert answer["known"] or answer["content"] is None
    return answer["why"]


async def block(user: User, run_id: str, **query: Any) -> dict[str, Any]:
    answer = await user.http.get(f"/v1/runs/{run_id}/summary", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def slug(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, answer.json()["type"].rpartition(":")[2]


@pytest.fixture
def run_id() -> str:
    return str(uuid4())


async def test_a_file_that_was_read_is_known_with_its_content_hash_exports_and_age(alice: User, run_id: str):
    await tell(alice, run_id, read(1), step(2, "think", "hm"), step(3, "think", "so"))
    answer = await asked(alice, run_id, "read_file", PATH)
    assert (answer["known"], answer["why"], answer["age_steps"], answer["similarity"]) == (True, "known", 2, 1)
    assert (answer["content"], answer["content_cut"]) == (SOURCE, False)
    finding = answer["finding"]
    assert (finding["kind"], finding["path"], finding["step"], finding["run_id"]) == ("read", PATH, 1, run_id)
    assert (finding["names"], finding["classes"], finding["hash"]) == (["LIMIT", "retain"], ["Case"], sha(SOURCE))


@pytest.mark.parametrize(
    ("tool", "query"),
    [
        ("read_file", {"path": f"./{PATH}"}),
        ("Read", {"file_path": PATH}),
        ("fs:read", PATH),
        ("bash", f"cat {PATH}"),
        ("shell", {"command": ["bash", "-lc", f"cat '{PATH}'"]}),
        ("read_file", {"path": PATH, "offset": 2, "limit": 3}),
        ("bash", f"sed -n '2,4p' {PATH}"),
    ],
    ids=str,
)
async def test_a_file_is_known_by_whichever_tool_and_words_it_is_asked_for(
    tool: str, query: Any, alice: User, run_id: str
):
    await tell(alice, run_id, read(1))
    assert await why(alice, run_id, tool, query) == "known"


async def test_arguments_that_are_json_in_a_text_are_read_as_such(alice: User, run_id: str):
    await tell(
        alice,
        run_id,
        step(1, "read_file", f'{{"path": "{PATH}"}}', SOURCE),
        step(2, "grep", '{"pattern": "Case"}', f"Found 1 file:\n{PATH}"),
    )
    answer = await asked(alice, run_id, "read_file", PATH)
    assert (answer["known"], answer["finding"]["path"], answer["finding"]["classes"]) == (True, PATH, ["Case"])
    assert await why(alice, run_id, "read_file", f'{{"file_path": "./{PATH}"}}') == "known"
    assert await why(alice, run_id, "grep", "Case") == "known"


async def test_a_question_counts_as_a_read(alice: User, run_id: str):
    await tell(alice, run_id, read(1))
    answer = await alice.http.post(f"/v1/runs/{run_id}/known", json={"tool": "read_file", "query": PATH})
    assert '"user-reads"' in answer.headers["RateLimit"]


async def test_what_was_never_looked_at_is_unknown(alice: User, run_id: str):
    await tell(alice, run_id, read(1), step(2, "read_file", {"path": "b.py", "offset": 1, "limit": 2}, "x = 1\n"))
    assert await why(alice, run_id, "read_file", "bank/other.py") == "unknown"
    assert await why(alice, run_id, "read_file", "b.py") == "unknown"
    assert await why(alice, run_id, "read_file", {"path": PATH, "offset": 5, "limit": 50}) == "unknown"
    assert await why(alice, run_id, "grep", {"pattern": "Case"}) == "unknown"


CHANGES = {
    "an edit": step(2, "Edit", {"file_path": PATH, "old_string": "a", "new_string": "b"}),
    "an edit by the path from the root": step(2, "Edit", {"file_path": f"/home/me/repo/{PATH}"}),
    "an edit that failed": step(2, "write_file", {"path": PATH}, "no space left", status="error"),
    "sed in place": bash(2, f"sed -i 's/a/b/' {PATH}"),
    "a redirection": bash(2, f"echo x >> ./{PATH}"),
    "a here-document": bash(2, f"cat > {PATH} <<'END'\nx = 1\nEND"),
    "its removal": bash(2, f"rm -f {PATH}"),
    "the removal of its folder": bash(2, "rm -rf bank"),
    "a move": bash(2, f"mv {PATH} old.py"),
    "a command in its folder": bash(2, "cd bank && echo x > case.py"),
    "a move by a tool": step(2, "move_file", {"source": PATH, "destination": "old.py"}),
}


@pytest.mark.parametrize("name", CHANGES)
async def test_what_a_later_step_changed_is_stale_whatever_its_hash(name: str, alice: User, run_id: str):
    await tell(alice, run_id, read(1), CHANGES[name])
    assert await why(alice, run_id, "read_file", PATH) == "changed"
    assert await why(alice, run_id, "read_file", PATH, hash=sha(SOURCE)) == "changed"
    await tell(alice, run_id, read(10, output=SOURCE + "# new\n"))
    answer = await asked(alice, run_id, "read_file", PATH)
    assert (answer["why"], answer["finding"]["step"]) == ("known", 10)


UNSURE = {
    "the project's own code": bash(2, "pytest -q", "1 passed"),
    "a command nobody knows": bash(2, "make build"),
    "a checkout": bash(2, "git checkout main"),
    "a formatter": bash(2, "ruff format ."),
    "a pattern of files": bash(2, "rm *.py"),
    "a program within": bash(2, "echo $(make)"),
    "a tool nobody knows": step(2, "mcp__ide__refactor", {"symbol": "Case"}),
    "an edit of no one file": step(2, "apply_patch", {"patch": "*** Begin Patch"}),
}


@pytest.mark.parametrize("name", UNSURE)
async def test_what_a_later_step_may_have_changed_is_known_by_its_hash_alone(name: str, alice: User, run_id: str):
    await tell(alice, run_id, read(1), UNSURE[name])
    assert await why(alice, run_id, "read_file", PATH) == "in_doubt"
    assert await why(alice, run_id, "read_file", PATH, hash=sha(SOURCE)) == "known"
    assert await why(alice, run_id, "read_file", PATH, hash=sha("else")) == "another_hash"


HARMLESS = {
    "a search": bash(2, "grep -rn x . | head -5"),
    "a look at the history": bash(2, "git log --oneline -3 2>/dev/null"),
    "a checker": bash(2, "ruff check . && mypy app"),
    "another file's edit": step(2, "Edit", {"file_path": "bank/other.py"}),
    "an edit in another folder": bash(2, "echo x > docs/case.md"),
    "a thought": step(2, "think", {"thought": "hm"}),
    "a tool that gets": step(2, "get_weather", {"city": "Leeds"}, "rain"),
    "a question": step(2, "mind:rag-query", {"query": "how are runs kept"}, {"answer": "as cases"}),
}


@pytest.mark.parametrize("name", HARMLESS)
async def test_what_changes_no_such_file_leaves_it_known(name: str, alice: User, run_id: str):
    await tell(alice, run_id, read(1), HARMLESS[name])
    assert await why(alice, run_id, "read_file", PATH) == "known"


async def test_another_hash_makes_a_file_stale_and_an_older_reading_is_not_told_in_its_place(alice: User, run_id: str):
    await tell(alice, run_id, read(1))
    assert await why(alice, run_id, "read_file", PATH, hash=sha(SOURCE + "x")) == "another_hash"
    await tell(alice, run_id, step(2, "read_file", {"path": PATH}, "Error: no such file", status="error"))
    assert await why(alice, run_id, "read_file", PATH) == "failed"


async def test_a_shell_that_changes_its_folder_leaves_no_relative_path_certain(alice: User, run_id: str):
    await tell(alice, run_id, bash(1, "cat case.py", SOURCE), read(2, "/r/bank/case.py"))
    assert await why(alice, run_id, "bash", "cat case.py") == "known"
    await tell(alice, run_id, bash(3, "cd bank"))
    assert await why(alice, run_id, "bash", "cat case.py") == "in_doubt"
    assert await why(alice, run_id, "read_file", "/r/bank/case.py") == "known"


async def test_a_shell_that_changes_its_folder_leaves_what_another_tool_found_known(alice: User, run_id: str):
    await tell(alice, run_id, step(1, "get_order", {"order": 7}, "open"), bash(2, "cd bank"))
    assert await why(alice, run_id, "get_order", {"order": 7}) == "known"


async def test_a_search_is_known_until_something_changes_where_it_looked(alice: User, run_id: str):
    found = "bank/case.py:6:class Case:\nbank/bank.py:1:from case import Case"
    await tell(alice, run_id, step(1, "grep", {"pattern": "Case", "path": "bank"}, found))
    answer = await asked(alice, run_id, "grep", {"path": "bank/", "pattern": "Case"})
    assert (answer["known"], answer["finding"]["count"]) == (True, 2)
    assert answer["finding"]["samples"] == ["bank/case.py", "bank/bank.py"]
    for other in (
        {"pattern": "Case"},
        {"pattern": "case", "path": "bank"},
        {"pattern": "Case", "path": "bank", "-i": 1},
    ):
        assert await why(alice, run_id, "grep", other) == "unknown"
    await tell(alice, run_id, step(2, "Write", {"file_path": "docs/a.md"}))
    assert await why(alice, run_id, "grep", {"pattern": "Case", "path": "bank"}) == "known"
    await tell(alice, run_id, step(3, "Write", {"file_path": "/home/me/repo/bank/new.py"}))
    assert await why(alice, run_id, "grep", {"pattern": "Case", "path": "bank"}) == "changed"


async def test_a_search_of_everything_is_changed_by_any_change(alice: User, run_id: str):
    await tell(alice, run_id, bash(1, "rg -n Case", "a.py:1:Case"))
    assert await why(alice, run_id, "bash", "rg -n  'Case'") == "known"
    await tell(alice, run_id, step(2, "Write", {"file_path": "docs/a.md"}))
    assert await why(alice, run_id, "bash", "rg -n Case") == "changed"


async def test_a_question_is_known_by_what_it_asks_and_not_by_words_that_are_near(alice: User, run_id: str):
    asks = {"query": "How are the secrets of a run redacted?"}
    await tell(alice, run_id, step(1, "mind:rag-query", asks, {"answer": "Before anything is stored."}))
    answer = await asked(alice, run_id, "mind:rag-query", "please tell me how a run's secret is redacted")
    assert (answer["known"], answer["finding"]["fact"]) == (True, "Before anything is stored.")
    near = await asked(alice, run_id, "mind:rag-query", "How are the secrets of a run sealed?")
    assert (near["known"], near["why"], near["finding"]["step"]) == (False, "similar", 1)
    assert 0 < near["similarity"] < 1
    assert await why(alice, run_id, "mind:rag-query", "Why aren't the secrets of a run redacted?") == "similar"
    turned = await asked(alice, run_id, "mind:rag-query", "How are the runs of a secret redacted before a case?")
    assert turned["why"] == "similar"
    await tell(alice, run_id, step(2, "Write", {"file_path": "a.md"}))
    assert await why(alice, run_id, "mind:rag-query", asks) == "known"


async def test_a_question_in_other_words_is_similar_and_the_one_asked_before_is_nearest(alice: User):
    """Thirty questions in other words and thirty others in nearly the same words, written before any was tried."""
    rows = [line.split("\t") for line in QUESTIONS.read_text().splitlines()]
    steps = list(dict.fromkeys([before for _, before, _ in rows] + [now for sign, _, now in rows if sign == "other"]))
    nearest, same = 0, [(before, now) for sign, before, now in rows if sign == "same"]
    for order in (steps, steps[::-1]):  # of equally near ones the newest is answered
        run_id = str(uuid4())
        await tell(alice, run_id, *(step(at, "ask", {"query": text}, text) for at, text in enumerate(order, 1)))
        answers = {before: await asked(alice, run_id, "ask", now) for before, now in same}
        assert {answer["why"] for answer in answers.values()} == {"known", "similar"}
        nearest += sum(answer["finding"]["fact"] == before for before, answer in answers.items())
    assert (len(same), nearest / 2) == (30, 24.5)


async def test_a_question_that_shares_only_how_or_where_is_unknown(alice: User, run_id: str):
    await tell(alice, run_id, step(1, "ask", {"query": "How are secrets redacted, and where?"}, "on the way in"))
    for text in ("How tall is the tower?", "Where can I park near the stadium?", "Which songs are on the album?"):
        assert await why(alice, run_id, "ask", text) == "unknown"
    assert await why(alice, run_id, "ask", "Where are secrets kept?") == "similar"


async def test_no_question_is_known_by_one_in_nearly_the_same_words(alice: User, run_id: str):
    rows = [line.split("\t") for line in QUESTIONS.read_text().splitlines()]
    others = {now: before for sign, before, now in rows if sign == "other"}
    await tell(alice, run_id, *(step(at, "ask", {"query": text}) for at, text in enumerate(others.values(), 1)))
    assert {await why(alice, run_id, "ask", now) for now in others} == {"similar"}


async def test_the_same_words_in_another_direction_are_another_question(alice: User, run_id: str):
    await tell(alice, run_id, step(1, "ask", {"query": "how are runs turned into cases"}, "by the worker"))
    answer = await asked(alice, run_id, "ask", "how are cases turned into runs")
    assert (answer["why"], answer["similarity"]) == ("similar", 0.99)


async def test_a_call_that_acts_is_never_known_and_one_that_only_looks_is(alice: User, run_id: str):
    order = {"order": 7}
    await tell(
        alice, run_id, step(1, "get_order", order, "open"), bash(2, "git status", "clean"), bash(3, "date", "May")
    )
    assert await why(alice, run_id, "get_order", order) == "known"
    assert await why(alice, run_id, "bash", "git status") == "known"
    assert await why(alice, run_id, "bash", "date") == "unknown"
    await tell(alice, run_id, step(4, "cancel_order", order, "done"))
    assert await why(alice, run_id, "cancel_order", order) == "unknown"
    assert await why(alice, run_id, "get_order", order) == "in_doubt"
    assert await why(alice, run_id, "bash", "pytest -q") == "unknown"


async def test_a_profile_says_what_tools_are_whose_names_do_not_tell(alice: User, run_id: str):
    kinds = {"peek": "read", "ponder": "other", "look": "search"}
    answer = await alice.http.put(f"/v1/profiles/{AGENT}", json={"tool_kinds": kinds})
    assert (answer.status_code, answer.json()["tool_kinds"]) == (200, kinds)
    await tell(alice, run_id, step(1, "peek", {"path": PATH}, SOURCE), step(2, "ponder", "x"))
    answer = await asked(alice, run_id, "peek", PATH)
    assert (answer["known"], answer["finding"]["classes"]) == (True, ["Case"])
    wrong = await alice.http.put(f"/v1/profiles/{AGENT}", json={"tool_kinds": {"peek": "stare"}})
    assert slug(wrong) == (422, "invalid-request")


async def test_the_content_is_cut_where_asked_and_stands_in_the_case_once_the_run_has_ended(alice: User, run_id: str):
    await tell(alice, run_id, read(1))
    cut = await asked(alice, run_id, "read_file", PATH, content_chars=6)
    assert (cut["content"], cut["content_cut"]) == ("import", True)
    none = await asked(alice, run_id, "read_file", PATH, content_chars=0)
    assert (none["content"], none["finding"]["step"]) == (None, 1)
    case_id = await alice.retain("mend the bank", run_id=run_id)
    ended = await asked(alice, run_id, "read_file", PATH)
    assert (ended["known"], ended["content"], ended["finding"]["case_id"]) == (True, None, case_id)
    await alice.settle()
    traces = (await alice.case(case_id))["tool_traces"]
    assert [(trace["tool"], trace["output"]) for trace in traces] == [("read_file", SOURCE)]


async def test_an_earlier_run_is_asked_by_path_and_hash_or_by_what_a_question_asks(alice: User, run_id: str):
    before = str(uuid4())
    asks = step(2, "web_search", {"query": "limits of nftables counters"}, "there are none")
    await tell(alice, before, read(1), asks, bash(3, "grep -rn Case bank", "bank/case.py:1:Case"))
    case_id = await alice.retain("mend the bank", run_id=before)
    await tell(alice, run_id, step(1, "think", "x"))
    everywhere = {"across_runs": True}
    assert await why(alice, run_id, "read_file", PATH) == "unknown"
    same = await asked(alice, run_id, "read_file", PATH, hash=sha(SOURCE), **everywhere)
    assert (same["known"], same["age_steps"]) == (True, None)
    assert (same["finding"]["run_id"], same["finding"]["case_id"]) == (before, case_id)
    assert await why(alice, run_id, "read_file", PATH, **everywhere) == "earlier"
    assert await why(alice, run_id, "read_file", PATH, hash=sha("x"), **everywhere) == "earlier"
    assert await why(alice, run_id, "bash", "grep -rn Case bank", **everywhere) == "earlier"
    assert await why(alice, run_id, "web_search", "the limits of the nftables counter", **everywhere) == "known"
    assert await why(alice, run_id, "web_search", "price of nftables counters", **everywhere) == "similar"
    other = str(uuid4())
    await tell(alice, other, step(1, "think", "x"), agent="another-agent")
    assert await why(alice, other, "read_file", PATH, hash=sha(SOURCE), **everywhere) == "unknown"


async def test_the_summary_has_the_exact_form_and_only_what_still_holds(alice: User, run_id: str):
    await tell(
        alice,
        run_id,
        read(1),
        step(2, "read_file", {"path": "b.ts"}, "export interface Slate {}"),
        bash(3, 'rg -n "class Case" bank', "bank/case.py:6:class Case:"),
        step(4, "mind:rag-query", {"query": "how are runs kept?"}, {"answer": "as <cases>\nof a bank"}),
        step(5, "Edit", {"file_path": "b.ts"}, "edited"),
    )
    told = await block(alice, run_id)
    assert told["text"] == (
        "# Execution Memory\n\n"
        "**Files Already Read:**\n"
        "- bank/case.py: File contains: names LIMIT, retain; classes Case; 11 lines (step 1)\n\n"
        "**Previous Search Results:**\n"
        '- rg -n "class Case" bank: Found 1 match: bank/case.py (step 3)\n\n'
        "**Other Findings:**\n"
        '- mind:rag-query (how are runs kept?): "as \\u003ccases> of a bank" (step 4)\n'
        '- Edit (b.ts): "edited" (step 5)\n'
    )
    assert (told["findings"], told["left_out"]) == (4, {})


async def test_the_summary_keeps_within_its_budget_the_newest_of_each_group(alice: User, run_id: str):
    many = [read(number, f"f{number}.py", "x = 1\n") for number in range(1, 61)]
    await tell(alice, run_id, *many, bash(61, "rg x", "f1.py:1:x"))
    small = await block(alice, run_id, token_budget=100)
    assert small["tokens"] <= 100
    assert "f60.py" in small["text"]
    assert "f1.py: File" not in small["text"]
    assert "rg x" in small["text"]
    assert small["findings"] + small["left_out"]["files"] == 61
    assert (await block(alice, run_id, token_budget=3))["text"] == ""
    assert slug(await alice.http.get(f"/v1/runs/{run_id}/summary?token_budget=-1")) == (422, "invalid-request")


async def test_findings_are_cleared_and_the_steps_stay(alice: User, run_id: str):
    await tell(alice, run_id, read(1))
    assert (await alice.http.delete(f"/v1/runs/{run_id}/summary")).status_code == 204
    assert (await block(alice, run_id))["text"] == ""
    assert await why(alice, run_id, "read_file", PATH) == "unknown"
    assert len((await alice.http.get(f"/v1/runs/{run_id}")).json()["steps"]) == 1
    entries = (await alice.http.get("/v1/audit")).json()["entries"]
    assert entries[0]["action"] == "clear_findings"


async def test_a_path_longer_than_any_files_is_refused_and_nothing_of_the_call_is_kept(alice: User, run_id: str):
    await tell(alice, run_id, read(1))
    long = "d/" * 5_000
    for bad in (read(3, long), bash(3, f"cat {long}"), step(3, "Edit", {"file_path": long})):
        body = {"agent": AGENT, "task": "mend", "steps": [read(2, "b.py"), bad]}
        answer = await alice.http.post(f"/v1/runs/{run_id}/steps", json=body)
        assert slug(answer) == (422, "invalid-request")
        assert "4,096" in answer.text
        assert long not in answer.text
    answer = await alice.http.post(f"/v1/runs/{run_id}/known", json={"tool": "read_file", "query": long})
    assert slug(answer) == (422, "invalid-request")
    assert (await alice.http.get(f"/v1/runs/{run_id}")).json()["step_count"] == 1
    assert await why(alice, run_id, "read_file", PATH) == "known"


async def test_binary_output_is_kept_as_such_and_what_is_no_text_is_refused(alice: User, run_id: str):
    blob = "\x00\x01\ufffd" * 3_000
    await tell(alice, run_id, read(1, "logo.png", blob), bash(2, "xxd logo.png", "\x1b[31m\x00"))
    answer = await asked(alice, run_id, "read_file", "logo.png")
    assert (answer["known"], answer["content"], answer["finding"]["fact"]) == (
        True,
        blob,
        "File is binary: 9,000 characters",
    )
    assert "\x00" not in (await block(alice, run_id))["text"]
    body = (
        b'{"agent": "%s", "task": "x", "steps": [{"number": 3, "tool": "cat", "output": "\\ud800"}]}' % AGENT.encode()
    )
    headers = {"Content-Type": "application/json"}
    answer = await alice.http.post(f"/v1/runs/{run_id}/steps", content=body, headers=headers)
    assert slug(answer) == (422, "invalid-request")


async def test_a_step_of_five_megabytes_is_refused_and_nothing_is_lost(alice: User, run_id: str):
    await tell(alice, run_id, read(1))
    body = {"agent": AGENT, "task": "mend", "steps": [read(2, "big.py", "x" * 5_000_000)]}
    assert slug(await alice.http.post(f"/v1/runs/{run_id}/steps", json=body)) == (413, "body-too-large")
    assert await why(alice, run_id, "read_file", PATH) == "known"


async def test_a_large_file_is_read_off_in_time(alice: User, run_id: str):
    await tell(alice, run_id, read(1, "big.py", "class Big: ...\n" + "x = [(1,)]\n" * 250_000))
    assert (await asked(alice, run_id, "read_file", "big.py"))["finding"]["classes"] == ["Big"]


@pytest.mark.parametrize(
    "body",
    [
        {"tool": "", "query": "x"},
        {"tool": "x" * 201, "query": "x"},
        {"tool": "x"},
        {"tool": "read_file", "query": "x", "hash": "abc"},
        {"tool": "read_file", "query": "x", "content_chars": -1},
        {"tool": "read_file", "query": "x", "path": "y"},
    ],
    ids=str,
)
async def test_a_question_of_another_form_is_refused(body: dict[str, Any], alice: User, run_id: str):
    await tell(alice, run_id, read(1))
    assert slug(await alice.http.post(f"/v1/runs/{run_id}/known", json=body)) == (422, "invalid-request")


@pytest.mark.parametrize(
    "query", [None, 7, [], {}, {"path": None}, {"path": ["a.py", "b.py"]}, "", "\x00", "'", "`"], ids=repr
)
@pytest.mark.parametrize("tool", ["read_file", "grep", "bash", "ask", "Edit", "whatever"])
async def test_no_question_breaks_anything(tool: str, query: Any, alice: User, run_id: str):
    await tell(alice, run_id, step(1, tool, query))
    assert not (await asked(alice, run_id, tool, query, across_runs=True))["known"] or tool in {
        "read_file",
        "grep",
        "ask",
    }


async def test_a_run_of_another_user_is_one_that_nobody_has(alice: User, bob: User, run_id: str):
    await tell(alice, run_id, read(1))
    await tell(bob, str(uuid4()), step(1, "think", "x"))
    for named in (run_id, str(uuid4())):
        known = await asked(bob, named, "read_file", PATH, across_runs=True)
        assert (known["why"], known["finding"]) == ("unknown", None)
        for method in ("GET", "DELETE"):
            answer = await bob.http.request(method, f"/v1/runs/{named}/summary")
            assert slug(answer) == (404, "not-found")
    mine = str(uuid4())
    await tell(bob, mine, step(1, "think", "x"))
    assert await why(bob, mine, "read_file", PATH, hash=sha(SOURCE), across_runs=True) == "unknown"
    assert await why(alice, run_id, "read_file", PATH) == "known"


async def test_nothing_that_was_found_stands_readable_in_the_database(alice: User, run_id: str):
    await tell(alice, run_id, read(1), step(2, "ask", {"query": "where does the xylophone stand"}, "in the attic"))
    (row,) = await alice.rows(
        "SELECT string_agg(findings::text || encode(payload, 'escape'), ' ') FROM findings WHERE user_sub = :user_sub"
    )
    for word in ("bank", "case.py", "retain", "xylophone", "attic", sha(SOURCE)):
        assert word not in row[0]


async def test_findings_are_exported_opened_and_go_with_their_case_and_their_user(
    service: Service, alice: User, run_id: str
):
    await tell(alice, run_id, read(1))
    runtime = service.runtime
    rows = [row async for row in export(runtime.database, runtime.keyring, alice.name) if row["type"] == "findings"]
    assert [(row["payload"]["path"], row["payload"]["classes"], row["step"]) for row in rows] == [(PATH, ["Case"], 1)]
    case_id = await alice.retain("mend the bank", run_id=run_id)
    assert (await alice.http.delete(f"/v1/cases/{case_id}")).status_code == 204
    assert (await alice.rows("SELECT count(*) FROM findings WHERE user_sub = :user_sub"))[0][0] == 0
    other = str(uuid4())
    await tell(alice, other, read(1), read(2, "b.py"))
    receipt = await erase(runtime.database, alice.name)
    assert receipt.clean
    assert receipt.rows["findings"] == 2


async def test_what_was_kept_without_its_secrets_is_not_told_in_place_of_the_file(alice: User, run_id: str):
    text = 'KEY = "ghp_' + 'aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"\n\n\ndef use(): ...\n'
    await tell(alice, run_id, read(1, output=text), read(2, "b.py"))
    for more in ({}, {"hash": sha(text)}):
        answer = await asked(alice, run_id, "read_file", PATH, **more)
        assert (answer["why"], answer["content"], answer["finding"]["redacted"]) == ("redacted", None, True)
    assert "names KEY, use" in (await block(alice, run_id))["text"]
    assert await why(alice, run_id, "read_file", "b.py") == "known"


async def test_a_step_that_is_sent_again_is_found_out_once(alice: User, run_id: str):
    for _ in range(3):
        await tell(alice, run_id, read(1), bash(2, "cat a.py && echo x >> a.py", "x"))
    rows = await alice.rows("SELECT step, part, kind FROM findings WHERE user_sub = :user_sub ORDER BY step, part")
    assert [tuple(row) for row in rows] == [(1, 0, "read"), (2, 0, "read"), (2, 1, "write")]
    assert await why(alice, run_id, "read_file", "a.py") == "changed"


async def test_steps_that_come_out_of_order_are_judged_by_their_order(alice: User, run_id: str):
    await tell(alice, run_id, read(5))
    await tell(alice, run_id, step(2, "Edit", {"file_path": PATH}))
    assert await why(alice, run_id, "read_file", PATH) == "known"
    await tell(alice, run_id, step(6, "Edit", {"file_path": PATH}))
    assert await why(alice, run_id, "read_file", PATH) == "changed"


async def test_a_call_of_an_unknown_tool_leaves_the_summary_and_marks_what_it_may_have_changed(
    alice: User, run_id: str
):
    asks = step(3, "mind:rag-query", {"query": "how are runs kept?"}, "as cases")
    await tell(alice, run_id, read(1), bash(2, "rg -n Case bank", "bank/case.py:6:class Case:"), asks)
    await tell(alice, run_id, step(4, "get_order", {"order": 7}, "open"))
    await tell(alice, run_id, step(5, "slack:post", {"text": "half way"}, "posted"))
    told = await block(alice, run_id)
    assert told["findings"] == 5
    assert told["text"] == (
        "# Execution Memory\n\n"
        "**Files Already Read:**\n"
        "- bank/case.py: File contains: names LIMIT, retain; classes Case; 11 lines"
        " (step 1, may have changed since)\n\n"
        "**Previous Search Results:**\n"
        "- rg -n Case bank: Found 1 match: bank/case.py (step 2, may have changed since)\n\n"
        "**Other Findings:**\n"
        '- mind:rag-query (how are runs kept?): "as cases" (step 3)\n'
        '- get_order ({"order": 7}): "open" (step 4, may have changed since)\n'
        '- slack:post ({"text": "half way"}): "posted" (step 5)\n'
    )
    await tell(alice, run_id, step(6, "Edit", {"file_path": PATH}))
    text = (await block(alice, run_id))["text"]
    assert ("- bank/case.py:" in text, "rg -n Case" in text, "get_order" in text) == (False, False, True)
    assert await why(alice, run_id, "get_order", {"order": 7}) == "in_doubt"


async def written(user: User, run_id: str, *findings: dict[str, Any]) -> httpx.Response:
    body = {"agent": AGENT, "task": "mend the bank", "findings": list(findings)}
    return await user.http.post(f"/v1/runs/{run_id}/findings", json=body)


def by_hand(tool: str, query: str, fact: str, **more: Any) -> dict[str, Any]:
    return {"tool": tool, "query": query, "fact": fact, **more}


async def test_findings_are_written_by_hand_before_and_after_the_first_step(alice: User, run_id: str):
    answer = await written(
        alice,
        run_id,
        by_hand("fs:read", "src/store.ts", "File contains: VectorStore"),
        by_hand("fs:search", "VectorStore", "Found 3 files: a.ts, b.ts, c.ts"),
        by_hand("fs:list", "src/", "12 files found"),
        by_hand("crm", "customer 7", "has a premium plan"),
    )
    assert (answer.status_code, answer.json()) == (201, {"run_id": run_id, "findings": 4, "redactions": []})
    assert (await block(alice, run_id))["text"] == (
        "# Execution Memory\n\n"
        "**Files Already Read:**\n"
        "- src/store.ts: File contains: VectorStore (step 1)\n\n"
        "**Previous Search Results:**\n"
        "- VectorStore: Found 3 files: a.ts, b.ts, c.ts (step 1)\n\n"
        "**Other Findings:**\n"
        "- fs:list (src/): 12 files found (step 1)\n"
        "- crm (customer 7): has a premium plan (step 1)\n"
    )
    for tool, query in (("fs:read", "src/store.ts"), ("fs:search", "VectorStore"), ("crm", "customer 7")):
        known = await asked(alice, run_id, tool, query)
        assert (known["known"], known["content"], known["finding"]["by_hand"]) == (True, None, True)
    await tell(alice, run_id, step(1, "think", "so"), read(2))
    await written(alice, run_id, by_hand("crm", "customer 7", "has no plan"), by_hand("crm", "9", "is new", step=1))
    known = await asked(alice, run_id, "crm", "customer 7")
    assert (known["finding"]["fact"], known["finding"]["step"], known["age_steps"]) == ("has no plan", 2, 0)
    await tell(alice, run_id, step(3, "Edit", {"file_path": "src/store.ts"}))
    assert await why(alice, run_id, "fs:read", "src/store.ts") == "changed"
    assert await why(alice, run_id, "crm", "customer 8") == "unknown"
    assert await why(alice, run_id, "crm", "customer 7") == "in_doubt"


@pytest.mark.parametrize("last", [10_999, 32_767], ids=["full", "full_before_there_was_a_limit"])
async def test_a_step_full_of_findings_by_hand_refuses_more_and_another_takes_them(alice: User, run_id: str, last: int):
    finding = by_hand("crm", "customer 7", "has a premium plan")
    await written(alice, run_id, finding)
    await alice.rows("UPDATE findings SET part = :last WHERE user_sub = :user_sub RETURNING 1", last=last)
    refused = await written(alice, run_id, finding, {**finding, "step": 2})
    assert (refused.status_code, refused.json()["type"]) == (413, "urn:casebank:problem:payload-too-large")
    assert (await written(alice, run_id, {**finding, "step": 2})).status_code == 201
    assert await alice.rows("SELECT count(*) FROM findings WHERE user_sub = :user_sub") == [(2,)]


async def test_a_finding_by_hand_keeps_no_secret_and_is_refused_where_a_step_would_be(alice: User, run_id: str):
    secret = by_hand("fs:read", "a.ts", "KEY is ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5")
    assert [each["count"] for each in (await written(alice, run_id, secret)).json()["redactions"]] == [1]
    assert "ghp_" not in (await block(alice, run_id))["text"]
    assert slug(await written(alice, run_id)) == (422, "invalid-request")
    assert slug(await written(alice, run_id, by_hand("fs:read", "", "x"))) == (422, "invalid-request")
    long = by_hand("fs:read", "a", "x", path="a/" * 5_000)
    assert (await written(alice, run_id, long)).status_code == 422
    await tell(alice, run_id, step(1, "think", "x"))
    await alice.retain("mend the bank", run_id=run_id)
    assert (await written(alice, run_id, by_hand("fs:read", "b.ts", "x"))).status_code == 409


async def test_before_the_first_step_known_answers_with_what_earlier_runs_knew(alice: User, run_id: str):
    assert await why(alice, str(uuid4()), "read_file", PATH) == "unknown"
    before = str(uuid4())
    await tell(alice, before, read(1), step(2, "web_search", {"query": "limits of nftables counters"}, "none"))
    earlier = await asked(alice, run_id, "read_file", PATH)
    assert (earlier["known"], earlier["why"], earlier["finding"]["run_id"]) == (False, "earlier", before)
    assert await why(alice, run_id, "read_file", PATH, hash=sha(SOURCE)) == "known"
    assert (await asked(alice, run_id, "web_search", "nftables counter limits", agent=AGENT))["content"] == "none"
    assert await why(alice, run_id, "read_file", "other.py") == "unknown"
    assert await why(alice, run_id, "read_file", PATH, agent="another-agent") == "unknown"
    await tell(alice, str(uuid4()), step(1, "think", "x"), agent="another-agent")
    assert await why(alice, run_id, "read_file", PATH) == "unknown"  # whose run it is nobody said
    assert await why(alice, run_id, "read_file", PATH, agent=AGENT) == "earlier"
    assert (await alice.http.get(f"/v1/runs/{run_id}")).status_code == 404  # a question begins no run


async def test_two_searches_and_two_reads_of_one_thing_in_seven_steps_spare_both_calls(alice: User, run_id: str):
    await tell(
        alice,
        run_id,
        step(1, "mind:rag-query", {"text": "What is VectorStore interface?"}, '{"answer": "It stores vectors."}'),
        step(2, "fs:search", {"query": "VectorStore"}, "Found 1 file:\nsrc/store.ts"),
        step(3, "fs:read", {"filePath": "src/store.ts"}, "export interface VectorStore {}\n"),
        step(4, "fs:list", {"path": "src/"}, "store.ts\nindex.ts"),
        step(5, "slack:post", {"text": "found it"}, "posted"),
    )
    assert (await asked(alice, run_id, "mind:rag-query", {"text": "VectorStore interface definition"}))["known"]
    calm = str(uuid4())
    await tell(
        alice,
        calm,
        step(1, "fs:search", {"query": "VectorStore"}, "Found 1 file:\nsrc/store.ts"),
        step(2, "fs:read", {"path": "src/store.ts"}, "export interface VectorStore {}\n"),
        step(3, "mind:rag-query", {"text": "how are vectors stored?"}, "in a store"),
        step(4, "fs:list", {"path": "src/"}, "store.ts\nindex.ts"),
        step(5, "fs:read", {"path": "src/index.ts"}, "export * from './store'\n"),
    )
    spared = [("fs:search", {"query": "VectorStore interface"}), ("fs:read", {"filePath": "./src/store.ts"})]
    assert [await why(alice, calm, tool, query) for tool, query in spared] == ["known", "known"]
    assert await why(alice, calm, "fs:list", "src") == "known"
    assert "- fs:list (src/): 2 files found (step 4)\n" in (await block(alice, calm))["text"]


@pytest.mark.parametrize(
    ("tool", "given", "output"),
    [
        ("ask", {"question": "which sign ends it?"}, '{"answer": "cut here: \\ud83d"}'),
        ("grep", {"pattern": "x"}, '{"files": ["a\\ud83d.py", "b.py"]}'),
        ("grep", {"pattern": "x"}, f'{{"files": [], "count": {"9" * 40}}}'),
        ("read_file", {"path": PATH, "view_range": [10**12, 10**13]}, SOURCE),
        ("read_file", {"path": PATH, "offset": -(10**12)}, SOURCE),
    ],
)
async def test_an_output_or_a_range_of_any_value_is_taken_and_told(
    tool: str, given: Any, output: str, alice: User, run_id: str
):
    await tell(alice, run_id, step(1, tool, given, output))
    assert (await asked(alice, run_id, tool, given))["why"] == "known"
    assert (await block(alice, run_id))["findings"] == 1
