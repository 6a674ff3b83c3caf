"""A decision gives one answer to why for each case, in words; numbers wait behind a fold."""

import httpx

from tests.app.console.pages import visible_text
from tests.service import AGENT, User


async def _decided(alice: User) -> dict[str, str]:
    """Two cases of which the first is chosen, and a run that followed with a reward."""
    ids = [
        await alice.retain("water the roses in the garden", reward=1, reward_source="user"),
        await alice.retain("tune the piano", reward=1, reward_source="user"),
    ]
    await alice.settle()
    retrieved = await alice.retrieve("water the roses")
    more = {"retrieval_id": retrieved["retrieval_id"], "reward": 0.75, "reward_source": "user"}
    run = await alice.retain("water the roses on the balcony", **more)
    await alice.settle()
    return {"retrieval_id": retrieved["retrieval_id"], "chosen": ids[0], "run": run}


async def test_the_answer_to_why_is_a_sentence_with_the_words_that_the_case_shares(
    alice: User, console: httpx.AsyncClient
):
    decided = await _decided(alice)
    text = (await console.get(f"/console/decisions/{decided['retrieval_id']}")).text
    (why, *_) = text.split('<td class="why">')[1:]
    sentence = why.split("</td>")[0]
    assert sentence.startswith("Chosen: it shares “")
    assert "roses" in sentence
    assert sentence.endswith(" with the query, and its run went well.")


async def test_log_odds_and_probabilities_wait_behind_a_fold(alice: User, console: httpx.AsyncClient):
    decided = await _decided(alice)
    text = (await console.get(f"/console/decisions/{decided['retrieval_id']}")).text
    shown = visible_text(text)
    for words in ("log odds", "Score", "Learned", "robability"):
        assert words in text
        assert words not in shown.replace("Scores in log odds, and probabilities", ""), words


async def test_each_reward_of_a_decision_is_told_once(alice: User, console: httpx.AsyncClient):
    decided = await _decided(alice)
    address = f"/console/decisions/{decided['retrieval_id']}"
    assert (await console.get(address)).text.count("0.75") == 1
    await alice.feedback(case_id=decided["run"], reward=0.25, source="user")
    text = (await console.get(address)).text
    assert (text.count("0.75"), text.count("0.25")) == (1, 1)


async def test_advice_is_shown_with_its_text_and_its_runs_and_without_the_words_of_a_slate(
    alice: User, console: httpx.AsyncClient
):
    failed = {"tool": "refund", "input": {"method": "original"}, "output": "Error: store credit only"}
    mended = {"tool": "refund", "input": {"method": "store_credit"}, "output": "done"}
    case_id = await alice.retain("refund the lamp", plan=[], tool_traces=[failed, mended])
    await alice.settle()
    asked = await alice.http.post("/v1/advice", json={"agent": AGENT, "task": "refund the lamp", **failed})
    listed = (await console.get("/console/decisions", params={"agent": AGENT})).text
    (row,) = listed.split("<tbody>")[1].split("</tr>")[:-1]
    assert "advice at a failed call" in row
    text = (await console.get(f"/console/decisions/{asked.json()['advice_id']}")).text
    assert f"/console/cases/{case_id}?" in text
    assert "store_credit" in visible_text(text)
    for words in ("order that replay chose", "was deleted", "found no", "slate", "retrieval_id", "features"):
        assert words not in row + text.lower(), words
    receipt = (await alice.retrieve("water the roses"))["retrieval_id"]
    unknown = {"tool": "water", "output": "Error: no rain", "retrieval_id": receipt}
    await alice.http.post("/v1/advice", json={"agent": AGENT, "task": "water the roses", **unknown})
    (newest, *_) = (await alice.http.get("/v1/decisions")).json()["decisions"]
    assert (newest["mode"], newest["case_ids"]) == ("advice", [])
    assert "The agent got no advice" in (await console.get(f"/console/decisions/{newest['retrieval_id']}")).text


async def test_the_ranks_of_a_search_wait_behind_a_fold(alice: User, console: httpx.AsyncClient):
    await _decided(alice)
    text = (await console.get("/console/bank", params={"agent": AGENT, "q": "water the roses"})).text
    assert "ame kind of task by “" in visible_text(text)
    assert "Rank by meaning" in text
    assert "Rank by meaning" not in visible_text(text)


async def test_a_tool_call_is_one_line_with_its_arguments_and_long_values_shortened(
    alice: User, console: httpx.AsyncClient
):
    given = {"path": "notes.txt", "count": 3, "content": "x" * 500}
    case_id = await alice.retain("write it down", tool_traces=[{"tool": "write_file", "input": given, "output": "ok"}])
    asked = {"id": "1", "type": "function", "function": {"name": "get_rain", "arguments": '{"city": "Lisbon"}'}}
    deep = {"id": "2", "type": "function", "function": {"name": "get_sun", "arguments": "[" * 20_000}}
    turns = [{"role": "assistant", "content": None, "tool_calls": [asked, deep]}]
    body = {"agent": AGENT, "turns": turns}
    assert (await alice.http.post("/v1/sessions/monday/turns", json=body)).status_code == 200
    await alice.settle()
    text = (await console.get(f"/console/cases/{case_id}")).text
    line = text[text.index("<summary>") : text.index("</summary>")]
    assert "write_file(path=&#34;notes.txt&#34;, count=3, content=&#34;xxxx" in line
    assert len(line) < 300
    session = (await console.get("/console/session", params={"name": "monday"})).text
    assert "get_rain(city=&#34;Lisbon&#34;)" in session
    assert "get_sun(&#34;[[[" in session  # arguments of too many levels stay a text
