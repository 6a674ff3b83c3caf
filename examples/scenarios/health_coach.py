"""A health coach with four kinds of memory: the conversation, the user's goals and days, procedures, knowledge.

The backend adds the turns of each session; casebank reads goals and days off them by itself. The model's tools are
those of the Model Context Protocol.
"""

from typing import Any

import httpx

from examples.scenarios.place import NotHere, Place, analysed, ask, new_name, promise, tell, wait_until

QUESTION = "Compare my activity this month with last month"


def story(place: Place) -> None:
    """Talks in two sessions, and asks memory what is left of them."""
    agent = new_name("scenario-coach")
    monday, friday = new_name("monday"), new_name("friday")
    with place.http() as http:
        tell("Monday: the user says what they want, and what they did.")
        say(http, agent, monday, "My goal is to never skip leg day. My weight goal is 155 lbs.", "Noted.")
        say(http, agent, monday, "I ran 5 km yesterday.", "Well done.")
        session = ask(http, "GET", f"/v1/sessions/{monday}")
        promise("the session is loaded by its id alone", [turn["number"] for turn in session["turns"]] == [1, 2, 3, 4])
        wait_until(lambda: len(facts(http, agent)) >= 3)  # noqa: PLR2004 - two goals and a run
        goals = {fact["attribute"]: fact for fact in facts(http, agent, kind="goal")}
        promise("both goals are kept, in the user's words", len(goals) == 2)  # noqa: PLR2004
        weight = goals["weight"]
        promise(
            "a goal has metric, value, unit and category",
            (weight["value"], weight["category"]) == ("155", "health") and weight["unit"].startswith("lb"),
        )
        (event,) = facts(http, agent, kind="event")
        promise("a day is a date", event["about_from"] is not None)

        tell("Friday, in another session: the goal has changed.")
        say(http, agent, friday, "My weight goal is 150 lbs now.", "A good one.")
        wait_until(lambda: "150" in {fact["value"] for fact in facts(http, agent)})
        held = {fact["value"] for fact in facts(http, agent, kind="goal")}
        promise("the new goal closes the old one", "150" in held and "155" not in held)
        tool_answer = tool(http, agent, "get_my_goals", query="how heavy do I want to be?", top_k=1)
        promise("asked by the model, the nearest goal comes first", "150" in tool_answer)
        recalled = ask(http, "POST", "/v1/recall", agent=agent, query="How far did I run?")["memories"]
        promise("Monday's run is found across sessions", "5 km" in recalled[0]["text"])
        context = ask(http, "POST", "/v1/retrieve", agent=agent, query="What shall I train?", session_id=friday)
        promise(
            "the prompt has session and goals",
            all(word in context["memory_context"] for word in ("150 lbs", "leg day")),
        )

        tell("Procedures: how questions were answered, and which tools that took.")
        compare(http, agent, QUESTION, works=True)
        compare(http, agent, "Show my sleep of March", works=False)
        analysed(http, agent)
        patterns = ask(http, "GET", f"/v1/procedures?agent={agent}")["procedures"]
        scripts = [each for each in patterns if each["kind"] == "script"]
        promise("a pattern is stored of the good run alone", [each["success_score"] for each in scripts] == [1.0])
        advice = tool(http, agent, "get_tool_suggestions", query="Compare this month's workouts with last month's")
        promise("the model is told the tools that worked", "get_workouts" in advice and "compare" in advice)

        tell("Knowledge of the domain.")
        text = "Adults need 150 minutes of moderate activity a week."
        entry = {"category": "exercise", "type": "guideline", "title": "Activity", "text": text}
        ask(http, "POST", "/v1/knowledge", agent=agent, **entry)
        question = {"agent": agent, "query": "How active should I be?", "kinds": ["knowledge"]}
        wait_until(lambda: ask(http, "POST", "/v1/recall", **question)["memories"])
        (known,) = ask(http, "POST", "/v1/recall", **question)["memories"]
        promise("a guideline is found by its meaning, in its own words", text in known["text"])


def say(http: httpx.Client, agent: str, session: str, user: str, assistant: str) -> None:
    """Adds what the user said and what the coach answered to the session."""
    turns = [{"role": "user", "content": user}, {"role": "assistant", "content": assistant}]
    ask(http, "POST", f"/v1/sessions/{session}/turns", agent=agent, turns=turns)


def facts(http: httpx.Client, agent: str, **filters: str) -> list[dict[str, Any]]:
    """Returns what holds of the user now."""
    answer = http.get("/v1/facts", params={"agent": agent, **filters}).raise_for_status().json()
    held: list[dict[str, Any]] = answer["facts"]
    return held


def tool(http: httpx.Client, agent: str, name: str, **arguments: Any) -> str:
    """Calls a memory tool by the Model Context Protocol, and returns the text that the model reads.

    Raises:
        NotHere: the service has no MCP; it is an extra of casebank.
    """
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    answer = http.post("/mcp", params={"agent": agent}, json=message)
    if answer.status_code == httpx.codes.NOT_IMPLEMENTED:
        raise NotHere(answer.json()["detail"])
    text: str = answer.raise_for_status().json()["result"]["content"][0]["text"]
    return text


def compare(http: httpx.Client, agent: str, task: str, *, works: bool) -> None:
    """Retains a run of the coach that called two tools."""
    seen: dict[str, Any] = {"output": {"workouts": 12}} if works else {"output": "Error: no data", "status": "error"}
    traces = [
        {"tool": "get_workouts", "input": {"month": "2026-03"}, "duration_ms": 800, **seen},
        {"tool": "compare", "input": {"with": "2026-02"}, "duration_ms": 40, **seen},
    ]
    outcome = "success" if works else "failure"
    ask(http, "POST", "/v1/retain", agent=agent, task=task, outcome=outcome, tool_traces=traces)
