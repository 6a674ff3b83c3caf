"""Every page goes on where one row does not decrypt, and so does the deletion of that row."""

import httpx

from retrieval.sealed import UNREADABLE
from tests.app.console.furnish import furnish
from tests.service import AGENT, User

SEALED = [
    ("cases", "words", "id = '{case_id}'"),
    ("decisions", "words", "id = '{retrieval_id}'"),
    ("decisions", "told", "id = '{retrieval_id}'"),
    ("turns", "payload", "number = 1"),
    ("facts", "words", "id = '{fact_id}'"),
    ("knowledge", "words", "id = '{knowledge_id}'"),
    ("runs", "words", "id = '{run_id}'"),
    ("run_steps", "payload", "number = 1"),
    ("findings", "payload", "step = 1"),
]


async def test_a_row_that_does_not_decrypt_hides_no_page(alice: User, console: httpx.AsyncClient):
    things = await furnish(alice)
    for table, column, which in SEALED:
        await alice.damage(table, column, which.format(**vars(things)))
        pages = [page for page in things.pages() if table != "cases" or things.case_id not in page]
        found = {page: (await console.get(page)).status_code for page in pages}
        assert found == dict.fromkeys(pages, 200), table
        await alice.damage(table, column, which.format(**vars(things)))  # a bit that is flipped again is as before


async def test_a_step_and_a_finding_that_do_not_decrypt_hide_no_other(alice: User):
    things = await furnish(alice)
    for table, column in (("run_steps", "number"), ("findings", "step")):
        await alice.damage(table, "payload", f"{column} = 3")
    run = (await alice.http.get(f"/v1/runs/{things.run_id}")).json()
    assert [(step["tool"], step["output"] == UNREADABLE) for step in run["steps"]] == [
        ("read_file", False),
        ("write_file", False),
        ("", True),
    ]
    summary = (await alice.http.get(f"/v1/runs/{things.run_id}/summary")).json()
    assert "write_file" in summary["text"]
    assert UNREADABLE not in summary["text"]
    known = {"tool": "grep", "query": {"pattern": "restart the web server", "path": "logs"}}
    answer = await alice.http.post(f"/v1/runs/{things.run_id}/known", json=known)
    assert answer.json()["known"] is False


async def test_a_row_that_does_not_decrypt_can_be_deleted_or_written_again(alice: User):
    entry = {"agent": AGENT, "category": "walls", "type": "rule", "title": "paint", "text": "prime the wall first"}
    known = (await alice.http.post("/v1/knowledge", json=entry)).json()["knowledge_id"]
    await alice.damage("knowledge", "words", f"id = '{known}'")
    assert (await alice.http.post("/v1/knowledge", json=entry)).json()["knowledge_id"] == known
    assert (await alice.http.get(f"/v1/knowledge/{known}")).json()["text"] == entry["text"]
    case_id = await alice.retain("paint the wall")
    await alice.settle()
    await alice.damage("cases", "words", f"id = '{case_id}'")
    assert (await alice.http.delete(f"/v1/cases/{case_id}")).status_code == 204
    assert await alice.cases() == []
