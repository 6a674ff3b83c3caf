"""A call that answered with an error is a failed call everywhere, whatever its status said."""

from tests.service import User

NOT_FOUND = "Error: order not found"


async def test_errors_told_by_outputs_alone_count_the_same_in_the_bank_and_in_tool_memory(alice: User):
    traces = [{"tool": "cancel_order", "input": {"id": number}, "output": NOT_FOUND} for number in (1, 2)]
    case_id = await alice.retain("cancel the order", tool_traces=traces)
    await alice.settle()
    (listed,) = await alice.cases()
    shown = await alice.case(case_id)
    for case in (listed, shown):
        assert (case["error_count"], case["reward"], case["reward_source"]) == (2, 0.5, "heuristic")
    assert [trace["status"] for trace in shown["tool_traces"]] == ["ok", "ok"]  # as the backend told it
    tools = (await alice.http.get("/v1/tools", params={"agent": "operator"})).json()["tools"]
    assert [(tool["tool"], tool["calls"], tool["errors"]) for tool in tools] == [("cancel_order", 2, 2)]
    entries = (await alice.http.get("/v1/audit")).json()["entries"]
    assert [entry["action"] for entry in entries if entry["subject_id"] == case_id] == ["correct_case", "insert_case"]
