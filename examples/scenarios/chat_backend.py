"""A chat backend of two users: it retrieves before each answer, retains after it, and passes their thumbs on.

Each user has a JSON Web Token of their own; the backend keeps nothing between two messages.
"""

from dataclasses import dataclass
from typing import Any

import httpx
from casebank_client import Casebank

from examples.scenarios.place import Place, PromiseBroken, analysed, ask, new_name, promise, tell

QUESTION = "How do I get my money back for order 1042?"
ANSWER = "I have refunded order 1042 as store credit, because the package was opened."


def story(place: Place) -> None:
    """Answers both users, and looks at what each of them has in memory afterwards."""
    if len(place.tokens) < 2:  # noqa: PLR2004 - ann and ben
        raise PromiseBroken("this scenario is about two users: give --token twice")
    agent = new_name("scenario-chat")
    with place.client(0) as ann, place.client(1) as ben, place.http(0) as as_ann, place.http(1) as as_ben:
        tell("Ann asks; the backend retrieves, acts, and retains.")
        first = Chat(ann, agent).answer(QUESTION)
        promise("the first answer has no memory to go by", first["used"] == [])
        analysed(as_ann, agent)

        tell("Ann asks the like again, and is content; she gives a thumb up.")
        second = Chat(ann, agent).answer("How do I get my money back for order 2077?")
        promise("memory tells the second answer of the first run", first["case_id"] in second["used"])
        ann.feedback(retrieval_id=second["retrieval_id"], thumb="up")
        analysed(as_ann, agent)
        case = ask(as_ann, "GET", f"/v1/cases/{second['case_id']}")
        promise("the thumb is the reward of the second run", (case["reward"], case["reward_source"]) == (1.0, "user"))
        promise("the second run refers to the case it was planned by", case["reference_case_ids"] == second["used"])
        helped = ask(as_ann, "GET", f"/v1/cases/{first['case_id']}")
        promise("the reward reaches the case that helped", helped["reuse_reward"] > 0)

        tell("Ben asks the same, by his own token.")
        bens = Chat(ben, agent).answer(QUESTION)
        promise("Ben's answer knows nothing of Ann's runs", bens["used"] == [] and bens["memory_context"] == "")
        promise(
            "Ben cannot read Ann's case",
            as_ben.get(f"/v1/cases/{first['case_id']}").status_code == httpx.codes.NOT_FOUND,
        )
        analysed(as_ben, agent)
        promise("Ben has his own run alone", _cases(as_ben, agent) == {bens["case_id"]})
        promise("Ann has hers", _cases(as_ann, agent) == {first["case_id"], second["case_id"]})
        promise(
            "a stranger is refused", httpx.get(f"{place.base_url}/v1/cases").status_code == httpx.codes.UNAUTHORIZED
        )

        tell("Ann switches memory off for one message, then deletes a run.")
        promise("a message can do without memory", ann.retrieve(agent, QUESTION, memory=False)["cases"] == [])
        ask(as_ann, "DELETE", f"/v1/cases/{first['case_id']}")
        promise("a deleted run is gone", _cases(as_ann, agent) == {second["case_id"]})


@dataclass(frozen=True, slots=True)
class Chat:
    """The backend, for one user: ``answer`` is its whole loop."""

    memory: Casebank
    agent: str

    def answer(self, message: str) -> dict[str, Any]:
        """Answers a message: retrieve before, retain after."""
        retrieved = self.memory.retrieve(self.agent, message)
        call = {"tool": "refund", "input": {"method": "store credit"}, "output": {"refunded": True}}
        turns = [{"role": "user", "content": message}, {"role": "assistant", "content": ANSWER}]
        receipt = self.memory.retain(
            self.agent,
            message,
            "success",
            tool_traces=[call],
            turns=turns,
            retrieval_id=retrieved["retrieval_id"],
        )
        return {
            "retrieval_id": retrieved["retrieval_id"],
            "memory_context": retrieved["memory_context"],
            "used": [case["case_id"] for case in retrieved["cases"]],
            "case_id": receipt["case_id"],
        }


def _cases(http: httpx.Client, agent: str) -> set[str]:
    return {case["case_id"] for case in ask(http, "GET", f"/v1/cases?agent={agent}")["cases"]}
