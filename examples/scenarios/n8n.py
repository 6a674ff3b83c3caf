"""An n8n workflow that heals itself: its second task does not repeat the call that failed in the first.

The requests are those of the nodes in ``app/n8n/*.json``, filled in as n8n fills them in. Between them stands the
agent: a script that adds columns to tables, and knows of SQL what its memory tells it.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from examples.scenarios.place import Place, ask, new_name, promise, tell, wait_until

FOLDER = Path(__file__).parents[2] / "app" / "n8n"
EXPRESSION = re.compile(r"\{\{ ((?:(?!\}\}).)+) \}\}")
COLUMN = re.compile(r"ADD COLUMN \S+ (\w+)")
Call = dict[str, Any]


def story(place: Place) -> None:
    """Sends tasks through the flows: one that fails and is healed, one like it, and one that stays broken."""
    with place.http() as http:
        flows = Flows(http, new_name("scenario-n8n"))

        tell("A first task: a call fails, the agent corrects it, the analyst reads the run.")
        first = flows.master("Add a last_name column to the users table")
        promise("nothing is known before the first run", first["memory_context"] == "")
        promise("the first run fails once, then succeeds", first["statuses"] == ["error", "ok"])
        lesson = flows.analyst(first)
        promise("the analyst learns a procedure, and no human helps", lesson["status"] == "procedure_learned")
        promise("it names the cause", "arguments were at fault" in lesson["data"]["identified_root_cause"])
        promise("it names what put the call right", "`text` added" in lesson["data"]["successful_intervention"])

        tell("A second task of the kind: memory tells what worked.")
        second = flows.master("Add an age column to the profiles table")
        promise("the second run does not repeat the failed call", second["statuses"] == ["ok"])

        tell("A flow that searches a hosted Postgres finds the same memory under its old path.")
        answer = ask(http, "POST", "/functions/v1/hybrid-search-context-eng", query="how to add a column to a table")
        promise(
            "the old path answers the learned procedure",
            lesson["data"] in [each["metadata"]["data"] for each in answer],
        )

        tell("Two more runs: one without a failure, one whose failure nothing puts right.")
        promise("nothing is made of a run without a failure", flows.analyst(second)["status"] == "no_failure_detected")
        broken = flows.master("Add a nonsense column to the dual table")
        promise("what was never put right is no learned procedure", flows.analyst(broken)["status"] == "failure_lesson")


@dataclass(frozen=True, slots=True)
class Flows:
    """The three flows of n8n, for one agent."""

    http: httpx.Client
    agent: str

    def master(self, task: str) -> dict[str, Any]:
        """Does a task: rewriter, retrieve, agent, retain."""
        query = self._send("rewriter", "Rewrite", {"$json.agent": self.agent, "$json.query": task})["query"]
        settings = {"$('Settings').first().json.agent": self.agent}
        retrieved = self._send("master", "Retrieve", {**settings, "$json.query": query})
        calls = agent_acts(task, retrieved["memory_context"])
        statuses = [call["status"] for call in calls]
        run = {
            "agent": self.agent,
            "task": task,
            "outcome": "success" if statuses[-1] == "ok" else "failure",
            "tool_traces": calls,
            "retrieval_id": retrieved["retrieval_id"],
        }
        key = new_name("n8n-run")
        finished = {"$('Settings').first().json.key": key, "$('Finished run').first().json.run": run}
        self._send("master", "Retain", finished)
        return {"run": run, "key": key, "statuses": statuses, "memory_context": retrieved["memory_context"]}

    def analyst(self, done: dict[str, Any]) -> dict[str, Any]:
        """Retains the run under the key that the master used, waits for its analysis, and returns the lesson."""
        settings = {"$('Settings').first().json.key": done["key"], "$('Settings').first().json.run": done["run"]}
        kept = {"$('Retain').first().json.case_id": self._send("analyst", "Retain", settings)["case_id"]}
        wait_until(lambda: self._send("analyst", "Read case", kept)["lessons"] != "pending")
        case = self._send("analyst", "Read case", kept)
        procedure = case["procedure"] or {}
        if "initial_failure_summary" not in procedure.get("data", {}):
            return {"status": "no_failure_detected"}
        values = {"$json.procedure.status": procedure["status"], "$json.procedure.data": procedure["data"]}
        pairs = _node("analyst", "Procedure learned")["assignments"]["assignments"]
        return {pair["name"]: _filled(pair["value"], {**values, "$json.case_id": case["case_id"]}) for pair in pairs}

    def _send(self, flow: str, name: str, values: dict[str, Any]) -> Any:
        """Sends the request of an HTTP node, with these values in the place of its expressions."""
        parameters = _node(flow, name)
        known = {"$('Settings').first().json.casebank_url": "", **values}
        body = _pairs(parameters, "bodyParameters", known) or _filled(parameters.get("jsonBody"), known)
        headers = _pairs(parameters, "headerParameters", known)
        answer = self.http.request(parameters["method"], _filled(parameters["url"], known), json=body, headers=headers)
        return answer.raise_for_status().json()


def agent_acts(task: str, memory_context: str) -> list[Call]:
    """Adds the column: with the type that memory tells, else without one until the database complains."""
    column, table = re.findall(r"Add an? (\w+) column to the (\w+) table", task)[0]
    example = COLUMN.search(memory_context)
    calls = [sql(f"ALTER TABLE {table} ADD COLUMN {column}{f' {example[1]}' if example else ''}")]
    if calls[-1]["status"] == "error":
        calls.append(sql(f"ALTER TABLE {table} ADD COLUMN {column} text"))
    return calls


def sql(query: str) -> Call:
    """Calls the database: a column needs a type, and the table dual can have no other column."""
    works = COLUMN.search(query) is not None and "TABLE dual" not in query
    output = "ALTER TABLE" if works else "ERROR: syntax error at end of input"
    return {"tool": "sql", "input": {"query": query}, "output": output, "status": "ok" if works else "error"}


def _node(flow: str, name: str) -> dict[str, Any]:
    """Returns the parameters of a node of a flow."""
    nodes = json.loads((FOLDER / f"{flow}.json").read_text(encoding="utf-8"))["nodes"]
    (parameters,) = (node["parameters"] for node in nodes if node["name"] == name)
    return dict(parameters)


def _pairs(parameters: dict[str, Any], name: str, known: dict[str, Any]) -> dict[str, Any]:
    pairs = parameters.get(name, {"parameters": []})["parameters"]
    return {pair["name"]: _filled(pair["value"], known) for pair in pairs}


def _filled(text: str | None, known: dict[str, Any]) -> Any:
    """Returns the parameter as n8n fills it in: after "=", an expression is its value, and what is around it text."""
    if text is None or not text.startswith("="):
        return text
    whole = EXPRESSION.fullmatch(text[1:])
    return known[whole[1]] if whole else EXPRESSION.sub(lambda part: str(known[part[1]]), text[1:])
