"""The newest turns of a session within a budget: none hides the others, and a tool's turn never stands alone."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from retrieval.sessions.fitting import fit
from retrieval.sessions.messages import SessionTurn
from retrieval.tokens import count_tokens

NOW = datetime(2026, 3, 2, tzinfo=UTC)
LONG = "x x x xx " * 3_000


def say(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def call(name: str, arguments: str, number: int = 1) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return say("assistant", None, tool_calls=[{"id": f"c{number}", "type": "function", "function": function}])


def result(content: str, number: int = 1) -> dict[str, Any]:
    return say("tool", content, tool_call_id=f"c{number}")


def cost(turn: SessionTurn) -> int:
    return count_tokens(turn.text)


def shown(budget: int, *messages: dict[str, Any]) -> list[SessionTurn]:
    turns = [SessionTurn(number, NOW, message) for number, message in enumerate(messages, start=1)]
    fitting = fit(turns[::-1], budget, cost)
    assert sum(map(cost, fitting)) <= budget
    assert [turn.number for turn in fitting] == sorted(turn.number for turn in fitting)
    return fitting


def roles(turns: list[SessionTurn]) -> list[tuple[int, str]]:
    return [(turn.number, turn.role) for turn in turns]


def test_the_end_of_one_large_turn_is_shown_as_well_as_its_beginning():
    (turn,) = shown(3_000, say("user", f"The log: {LONG}\nWhich customer complained?"))
    assert turn.said.startswith("The log: x x")
    assert turn.said.endswith("Which customer complained?")
    assert cost(turn) > 2_000


@pytest.mark.parametrize("role", ["user", "assistant", "tool", "system"])
def test_a_large_turn_is_shortened_and_those_before_it_are_shown(role: str):
    turns = shown(600, say("user", "My number is 4711."), say(role, f"begin {LONG} end"), say("user", "Who am I?"))
    assert [turn.number for turn in turns] == [1, 2, 3]
    assert turns[0].said == "My number is 4711."
    assert turns[1].said.startswith("begin")
    assert turns[1].said.endswith("end")
    assert turns[2].said == "Who am I?"


def test_a_large_text_among_the_parts_of_a_turn_is_shortened_and_the_other_parts_stay():
    parts = [
        {"type": "text", "text": LONG},
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {}},
    ]
    (turn,) = shown(300, say("user", parts))
    assert turn.message["content"][1:] == parts[1:]


def test_large_arguments_of_a_call_are_shortened_and_stay_json():
    turns = shown(400, say("user", "Go."), call("write", json.dumps({"path": "a.txt", "text": LONG})), result("ok"))
    assert roles(turns) == [(1, "user"), (2, "assistant"), (3, "tool")]
    arguments = json.loads(turns[1].message["tool_calls"][0]["function"]["arguments"])
    assert arguments["path"] == "a.txt"
    assert arguments["text"].startswith("x x")


@pytest.mark.parametrize(
    "arguments",
    ["[" * 700 + json.dumps(LONG) + "]" * 700, "[" * 9_000, json.dumps({"text": f"\ud83d{LONG}"}), f"{{{LONG}"],
)
def test_large_arguments_are_shortened_however_deep_or_broken_their_json_is(arguments: str):
    turns = shown(600, say("user", "Go."), call("write", arguments), result("ok"))
    assert roles(turns) == [(1, "user"), (2, "assistant"), (3, "tool")]
    assert turns[1].text.encode().startswith(b"write(")


def test_a_tools_turn_is_shown_with_its_call_or_not_at_all():
    messages = [
        say("user", "Find the price of part A-17."),
        call("search", json.dumps({"q": "x" * 400})),
        result("12 EUR"),
        say("assistant", "It costs 12 EUR."),
    ]
    assert roles(shown(60, *messages)) == [(1, "user"), (4, "assistant")]
    assert roles(shown(1_000, *messages)) == [(1, "user"), (2, "assistant"), (3, "tool"), (4, "assistant")]


@pytest.mark.parametrize("budget", range(10, 200, 7))
def test_no_budget_separates_a_tools_turn_from_its_call(budget: int):
    messages = [say("user", "Compare both, please.")]
    for number in range(6):
        messages += [call("search", '{"q": "a"}', number), result(f"{'word ' * (10 + 7 * number)}", number)]
    turns = shown(budget, *messages, say("assistant", "Done."))
    calls = {each["id"] for turn in turns for each in turn.message.get("tool_calls", ())}
    assert {turn.message["tool_call_id"] for turn in turns if turn.role == "tool"} == calls


@pytest.mark.parametrize("steps", [1, 5, 50, 400])
def test_the_users_latest_request_is_always_shown(steps: int):
    messages = [say("user", "Older talk."), say("assistant", "Yes."), say("user", "Sort the mails by date.")]
    for number in range(steps):
        messages += [call("mail", '{"page": 1}', number), result("word " * 60, number)]
    for budget in (60, 200, 600):
        turns = shown(budget, *messages)
        assert (3, "user") in roles(turns)
        assert turns[-1].number == len(messages) or budget == 60


def test_a_large_latest_request_in_chinese_is_shown_within_a_small_budget():
    turns = shown(60, say("user", "你好"), say("user", "今天天气很好我们去公园散步" * 800 + "请总结一下"))
    assert turns[-1].said.endswith("总结一下")


def test_a_large_latest_request_leaves_room_for_what_came_after_it():
    turns = shown(300, say("user", f"Translate: {LONG} thanks"), say("assistant", "Into which language?"))
    assert [turn.number for turn in turns] == [1, 2]
    assert turns[0].said.endswith("thanks")


def test_all_turns_are_shown_as_they_are_where_the_budget_holds_them():
    messages = [say("user", "a"), say("assistant", "b"), say("user", LONG)]
    assert [turn.message for turn in shown(100_000, *messages)] == messages


def test_no_turn_is_shown_without_a_budget():
    assert shown(0, say("user", "a")) == []
