"""The registry over HTTP: search, pages, versions, differences, pins and retirements, and what retrieve tells."""

from typing import Any
from uuid import uuid4

import pytest

from tests.app.routes.conftest import LESSON
from tests.service import AGENT, User

TASK = "Restart the web server"
FAR = "Write a poem about the sea"
NOBODY = "00000000-0000-4000-8000-000000000000"


def calls(*tools: str, failing: str = "") -> list[dict[str, Any]]:
    return [{"tool": t, "input": {"host": 1}, "output": "Error: not found" if t == failing else "done"} for t in tools]


async def learn(user: User, task: str = TASK, **more: Any) -> str:
    case_id = await user.retain(task, **({"tool_traces": calls("drain", "restart")} | more))
    await user.settle()
    return case_id


async def get(user: User, path: str = "", expected: int = 200, **query: Any) -> Any:
    answer = await user.http.get(f"/v1/procedures{path}", params=query)
    assert answer.status_code == expected, answer.text
    return answer.json()


async def post(user: User, path: str, status: int = 200, **body: Any) -> Any:
    answer = await user.http.post(f"/v1/procedures{path}", json=body)
    assert answer.status_code == status, answer.text
    if status != 200:
        assert answer.headers["content-type"] == "application/problem+json"
    return answer.json()


async def only(user: User) -> dict[str, Any]:
    (procedure,) = (await get(user))["procedures"]
    return procedure


async def revise(user: User, procedure_id: str) -> None:
    traces = calls("drain", "restart", failing="restart")
    await learn(user, f"run {uuid4()}", outcome="failure", tool_traces=traces, used_procedure_ids=[procedure_id])


async def test_retrieve_tells_the_procedure_with_its_steps_reason_and_threshold(alice: User):
    await learn(alice)
    answer = await alice.retrieve("Restart the mail server")
    (told,) = answer["procedures"]
    row = await only(alice)
    assert (told["id"], told["version"], told["kind"], told["trigger"]) == (row["id"], 1, "script", TASK)
    assert told["steps"] == row["record"]["learned_procedure_steps"]
    assert told["similarity"] > answer["procedure_threshold"]["similarity"]
    assert told["why"] == f"similarity {told['similarity']:.2f}; never used yet"
    assert answer["procedure_threshold"]["origin"] == "measured"
    assert 0.8 <= answer["procedure_threshold"]["right"] <= 1
    assert "guidance and not orders" in answer["memory_context"]
    assert "Kind: " not in answer["memory_context"]
    assert answer["memory_context"].index("[P1]") < answer["memory_context"].index("[1]")


async def test_the_text_tells_the_calls_of_a_script_once_in_the_case_that_taught_it(alice: User):
    await learn(alice)
    answer = await alice.retrieve(TASK)
    assert f'[P1] When: "{TASK}"\n    Steps: the actions of [1]\n[1] Context: ' in answer["memory_context"]
    assert answer["memory_context"].count("restart") == 1
    assert [step.split()[1] for step in answer["procedures"][0]["steps"]] == ["drain", "restart"]


async def test_a_script_names_a_case_only_where_the_budget_has_room_for_all_its_actions(alice: User):
    tools = [f"deploy_{number}" for number in range(20)]
    await learn(alice, tool_traces=calls(*tools))
    whole = await alice.retrieve(TASK)
    assert "Steps: the actions of [1]" in whole["memory_context"]
    for budget in (whole["tokens"] - 1, whole["tokens"] // 2):
        text = (await alice.retrieve(TASK, token_budget=budget))["memory_context"]
        assert "[1] Context: " in text
        assert "the actions of" not in text


async def test_a_profile_without_procedures_has_no_threshold_and_tells_none(alice: User):
    await alice.retain("water the garden")
    await alice.settle()
    answer = await alice.retrieve("water the garden")
    assert (answer["procedures"], answer["procedure_threshold"]) == ([], None)


async def test_without_a_token_budget_procedures_are_told_apart_from_the_text(alice: User):
    await learn(alice)
    answer = await alice.retrieve(TASK, token_budget=0)
    assert (answer["memory_context"], answer["tokens"], len(answer["procedures"])) == ("", 0, 1)


async def test_what_a_run_used_is_counted_and_shown_with_its_case(alice: User):
    await learn(alice)
    answer = await alice.retrieve(TASK)
    used = [answer["procedures"][0]["id"]]
    body = {"retrieval_id": answer["retrieval_id"], "used_procedure_ids": used, "reward": 0.75}
    case_id = await alice.retain("done", **body)
    await alice.settle()
    assert (await alice.case(case_id))["used_procedure_ids"] == used
    row = await only(alice)
    assert (row["uses"], row["use_reward"]) == (1, 0.75)
    (told,) = (await alice.retrieve(TASK))["procedures"]
    assert "0.8 of 1.0 uses rewarded" in told["why"]


async def test_search_finds_by_trigger_and_attributes(alice: User):
    await learn(alice, tags=["ops"])
    await learn(alice, FAR, tool_traces=[{"tool": "write", "output": "Sea, …"}], tags=["art"])
    found = await post(alice, "/search", agent=AGENT, trigger="Restart the mail server")
    assert [each["trigger"] for each in found["procedures"]] == [TASK]
    assert (found["threshold"]["origin"], found["degraded"]) == ("measured", [])
    for attributes in ({"domain": "ART"}, {"task_type": "write"}, {"tags": ["art"]}):
        found = await post(alice, "/search", agent=AGENT, **attributes)
        assert [each["trigger"] for each in found["procedures"]] == [FAR]
    assert (await post(alice, "/search", agent=AGENT, trigger=TASK, domain="art"))["procedures"] == []
    everything = await post(alice, "/search", agent=AGENT, trigger=TASK, min_similarity=-1)
    assert [each["trigger"] for each in everything["procedures"]] == [TASK, FAR]
    assert everything["threshold"] == {"similarity": -1, "origin": "request", "right": None}
    assert len((await post(alice, "/search", agent=AGENT, trigger=TASK, min_similarity=-1, limit=1))["procedures"]) == 1
    assert (await post(alice, "/search", agent="unknown", trigger=TASK))["procedures"] == []
    await post(alice, "/search", 422, agent=AGENT, trigger="  ")


async def test_the_longest_kind_of_work_and_of_request_that_a_run_may_name_can_be_searched_for(alice: User):
    named = {"task_type": "k" * 200, "query_kind": "q" * 200}
    await learn(alice, **named)
    (found,) = (await post(alice, "/search", agent=AGENT, **named))["procedures"]
    assert found["trigger"] == TASK


async def test_two_procedures_with_one_trigger_are_told_as_alternatives(alice: User):
    for tools in (("drain", "restart"), ("snapshot", "reinstall", "start")):
        await learn(alice, tool_traces=calls(*tools))
    answer = await alice.retrieve(TASK)
    first, second = answer["procedures"]
    assert (first["alternative_to"], second["alternative_to"]) == (None, first["id"])
    assert f'[P2] When: "{TASK}" (another way than P1)' in answer["memory_context"]
    found = (await post(alice, "/search", agent=AGENT, trigger=TASK))["procedures"]
    assert [each["alternative_to"] for each in found] == [None, found[0]["id"]]


async def test_a_revision_says_what_the_failed_run_showed(alice: User):
    await learn(alice, tool_traces=[shell("kubectl scale deploy web --replicas=3")])
    first = await only(alice)
    said = "Error from server (Forbidden): exceeded quota: compute-resources, requested: pods=50, used: pods=4"
    failing = shell("kubectl scale deploy web --replicas=50", said, "error")
    await learn(alice, f"run {uuid4()}", outcome="failure", tool_traces=[failing], used_procedure_ids=[first["id"]])
    (step,) = (await get(alice, f"/{first['id']}"))["record"]["learned_procedure_steps"]
    assert step.startswith(first["record"]["learned_procedure_steps"][0])
    note = step.partition(" In a run that failed: ")[2]
    assert "`kubectl scale deploy web --replicas=50`" in note
    assert "exceeded quota: compute-resources, requested: pods=<number>" in note
    assert "an exceeded-quota error" in note


def shell(command: str, output: str = "done", status: str = "ok") -> dict[str, Any]:
    return {"tool": "shell", "input": {"command": command}, "output": output, "status": status}


async def test_procedures_keep_and_are_found_by_what_their_runs_were_like(alice: User):
    def timed(ms: float, *tools: str) -> list[dict[str, Any]]:
        return [{**each, "duration_ms": ms} for each in calls(*tools)]

    await learn(alice, tool_traces=timed(2_000, "drain", "restart"))
    await learn(alice, FAR, tool_traces=timed(20_000, "write", "post"), reward=0.75, reward_source="user")
    await learn(alice, "Delete the old backups", tool_traces=calls("purge"))
    newest = (await get(alice))["procedures"]
    assert [(each["query_kind"], each["success_score"], each["duration_ms"]) for each in newest] == [
        ("remove", 1, None),
        ("create", 0.75, 40_000),
        ("run", 1, 4_000),
    ]
    for wanted, fitting in (
        ({"query_kind": "create"}, [FAR]),
        ({"min_success_score": 0.9}, ["Delete the old backups", TASK]),
        ({"max_duration_ms": 4_000}, [TASK]),
        ({"min_success_score": 0.8, "max_duration_ms": 1_000}, []),
    ):
        assert [each["trigger"] for each in (await get(alice, **wanted))["procedures"]] == fitting
        found = (await post(alice, "/search", agent=AGENT, **wanted))["procedures"]
        assert sorted(each["trigger"] for each in found) == sorted(fitting)
    (found,) = (await post(alice, "/search", agent=AGENT, trigger=TASK, query_kind="run"))["procedures"]
    assert (found["query_kind"], found["success_score"], found["duration_ms"]) == ("run", 1, 4_000)
    oldest = newest[-1]
    await revise(alice, oldest["id"])
    revision = await get(alice, f"/{oldest['id']}")
    assert (revision["version"], revision["query_kind"], revision["duration_ms"]) == (2, "run", 4_000)
    assert (await get(alice, query_kind="dream"))["procedures"] == []
    await get(alice, expected=422, query_kind="d" * 201)
    await get(alice, expected=422, min_success_score=2)
    await post(alice, "/search", status=422, agent=AGENT, max_duration_ms=-1)


async def test_a_case_says_what_was_learned_from_it_or_that_no_failure_was_detected(alice: User):
    plain = await learn(alice)
    assert (await alice.case(plain))["procedure"] == {"status": "no_failure_detected"}
    wrong, right = (
        {"tool": "find", "input": {"id": n}, "output": said} for n, said in ((1, "Error: not found"), (2, "x"))
    )
    fixed = [await learn(alice, "Find the lost order", tool_traces=[wrong, right]) for _ in range(2)]
    first, repeated = [(await alice.case(each))["procedure"] for each in fixed]
    assert first["status"] == "procedure_learned"
    assert repeated == first
    lost = (await alice.case(await learn(alice, "Find it", outcome="failure", tool_traces=[wrong])))["procedure"]
    assert lost["status"] == "failure_lesson"
    assert lost["data"]["procedure_name"].startswith("Avoid")
    waiting = await alice.retain("wait for it", tool_traces=[wrong])
    assert (await alice.case(waiting))["procedure"] != {"status": "no_failure_detected"}


@pytest.mark.parametrize("sent", [None, {"data": LESSON}], ids=["learned", "sent"])
async def test_a_case_does_not_say_what_was_withdrawn_since(alice: User, sent: dict[str, Any] | None):
    calls = [
        {"tool": "find", "input": {"id": n}, "output": said} for n, said in ((1, "Error: not found"), (2, "order 2"))
    ]
    case_id = await learn(alice, "Find the lost order", tool_traces=calls, procedure=sent)
    assert (await alice.case(case_id))["procedure"]["status"] == "procedure_learned"
    assert (await alice.feedback(case_id=case_id, thumb="down"))["withdrawn_procedure_ids"]
    assert (await alice.case(case_id))["procedure"] is None


async def test_pages_show_each_procedure_once_the_newest_first(alice: User):
    for number in range(5):
        await learn(alice, f"task {number} {uuid4()}", tool_traces=[{"tool": f"tool_{number}", "output": "x"}])
    newest = [each["id"] for each in (await get(alice))["procedures"]]
    await revise(alice, newest[-1])
    await revise(alice, newest[-1])
    seen, cursor = [], None
    while True:
        page = await get(alice, agent=AGENT, kind="script", limit=2, **({"cursor": cursor} if cursor else {}))
        seen += [each["id"] for each in page["procedures"]]
        if (cursor := page["next_cursor"]) is None:
            break
    assert seen == newest[:4]  # the fifth one's active version is a revision
    assert (await get(alice, agent="another"))["procedures"] == []
    (revision,) = (await get(alice, kind="revision"))["procedures"]
    assert revision["id"] == newest[-1]
    await post(alice, f"/{newest[0]}/retire")
    assert newest[0] not in [each["id"] for each in (await get(alice))["procedures"]]
    assert newest[0] in [each["id"] for each in (await get(alice, status="any"))["procedures"]]


async def test_a_learned_procedure_that_is_followed_leaves_what_the_run_left(alice: User):
    commands = [f"kubectl {rest}" for rest in ("scale deploy web --replicas=0", "scale deploy web --replicas=3")]
    await learn(alice, tool_traces=[{"tool": "shell", "input": {"command": each}, "output": "x"} for each in commands])
    (told,) = (await alice.retrieve(TASK))["procedures"]
    assert told["steps"] == [f"Call shell with command=`{each}`." for each in commands]


async def test_versions_are_kept_and_compared(alice: User):
    await learn(alice)
    first = await only(alice)
    await revise(alice, first["id"])
    versions = (await get(alice, f"/{first['id']}/versions"))["versions"]
    assert [(each["version"], each["status"], each["parent_version"]) for each in versions] == [
        (2, "active", 1),
        (1, "superseded", None),
    ]
    assert await get(alice, f"/{first['id']}") == versions[0]
    assert await get(alice, f"/{first['id']}", version=1) == versions[1]
    found = await get(alice, f"/{first['id']}/diff", **{"from": 1, "to": 2})
    assert (found["before"], found["after"]) == (1, 2)
    assert found["changes"]["fields"] == [{"field": "kind", "before": "script", "after": "revision"}]
    (change,) = found["changes"]["steps"]
    assert (change["change"], change["place"]) == ("changed", 2)
    assert change["before"] == first["record"]["learned_procedure_steps"][1:]
    assert "In a run that failed" in change["after"][0]
    nothing = await get(alice, f"/{first['id']}/diff", **{"from": 2, "to": 2})
    assert nothing["changes"] == {"fields": [], "steps": []}


async def test_a_version_is_pinned_let_go_and_retired_and_each_is_in_the_audit(alice: User):
    await learn(alice)
    first = await only(alice)
    await revise(alice, first["id"])
    pinned = await post(alice, f"/{first['id']}/pin", version=1)
    assert (pinned["version"], pinned["status"], pinned["pinned"]) == (1, "active", True)
    await revise(alice, first["id"])
    assert (await get(alice, f"/{first['id']}"))["version"] == 1
    assert (await post(alice, f"/{first['id']}/pin", version=1, pinned=False))["pinned"] is False
    retired = await post(alice, f"/{first['id']}/retire")
    assert (retired["version"], retired["status"]) == (1, "retired")
    await get(alice, f"/{first['id']}", expected=404)
    assert first["id"] not in [each["id"] for each in (await alice.retrieve(TASK))["procedures"]]
    entries = (await alice.http.get("/v1/audit", params={"limit": 200})).json()["entries"]
    mine = [each["action"] for each in entries if each["subject_id"] == first["id"]][::-1]
    assert mine == ["add_procedure", "revise_procedure", "pin_procedure", "unpin_procedure", "retire_procedure"]
    assert {each["actor"] for each in entries if each["action"] == "pin_procedure"} == {alice.name}
    again = await post(alice, f"/{first['id']}/pin", version=2)
    assert (again["version"], again["status"]) == (2, "active")


async def test_a_sample_is_drawn_by_its_seed_from_what_is_active(alice: User):
    for number in range(8):
        await learn(alice, f"task {number} {uuid4()}", tool_traces=[{"tool": f"tool_{number}", "output": "x"}])
    retired = (await get(alice))["procedures"][0]["id"]
    await post(alice, f"/{retired}/retire")

    async def drawn(**query: Any) -> list[str]:
        return [each["id"] for each in (await get(alice, "/sample", **query))["procedures"]]

    samples = [await drawn(n=3, seed=seed) for seed in range(6)]
    assert samples[0] == await drawn(n=3) == await drawn(n=3, agent=AGENT)
    assert all(len(set(sample)) == 3 for sample in samples)
    assert len({tuple(sample) for sample in samples}) > 1
    assert len(await drawn(n=100)) == 7
    assert retired not in await drawn(n=100)
    assert await drawn(agent="another") == []
    await get(alice, "/sample", expected=422, n=0)


async def test_a_review_is_of_one_version_the_newest_counts_and_it_is_redacted_noted_and_shown(alice: User):
    await learn(alice)
    first = await only(alice)
    assert first["review"] is None
    await post(alice, f"/{first['id']}/review", verdict="good")
    said = {"verdict": "incomplete", "steps_complete": False, "note": "ask ada@example.org first"}
    reviewed = (await post(alice, f"/{first['id']}/review", **said))["review"]
    assert (reviewed["verdict"], reviewed["steps_complete"], reviewed["root_cause_right"]) == (
        "incomplete",
        False,
        None,
    )
    assert (reviewed["note"], reviewed["actor"]) == ("ask [REDACTED:email] first", alice.name)
    assert (await only(alice))["review"] == reviewed
    assert (await get(alice, "/sample"))["procedures"][0]["review"] == reviewed
    await revise(alice, first["id"])
    newer, older = (await get(alice, f"/{first['id']}/versions"))["versions"]
    assert (newer["review"], older["review"]) == (None, reviewed)
    again = await post(alice, f"/{first['id']}/review", verdict="wrong", root_cause_right=False, version=1)
    assert (again["version"], again["review"]["verdict"]) == (1, "wrong")
    entries = (await alice.http.get("/v1/audit", params={"limit": 200})).json()["entries"]
    noted = [each["payload"] for each in entries if each["action"] == "review_procedure"]
    assert [each["verdict"] for each in noted][::-1] == ["good", "incomplete", "wrong"]
    assert 'casebank_procedure_reviews_total{verdict="wrong"}' in (await alice.http.get("/metrics")).text
    await post(alice, f"/{first['id']}/review", 422, verdict="splendid")
    await post(alice, f"/{first['id']}/review", 422)
    await post(alice, f"/{first['id']}/review", 404, verdict="good", version=9)


async def test_what_is_not_there_is_a_404(alice: User, bob: User):
    await learn(alice)
    mine = (await only(alice))["id"]
    for user, path in ((alice, NOBODY), (bob, mine)):
        await get(user, f"/{path}", expected=404)
        await get(user, f"/{path}/versions", expected=404)
        await get(user, f"/{path}/diff", expected=404, **{"from": 1, "to": 1})
        await post(user, f"/{path}/pin", status=404, version=1)
        await post(user, f"/{path}/retire", status=404)
        await post(user, f"/{path}/review", status=404, verdict="good")
    await get(alice, f"/{mine}", expected=404, version=2)
    await get(alice, f"/{mine}/diff", expected=404, **{"from": 1, "to": 2})
    await post(alice, f"/{mine}/pin", status=404, version=2)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/search", {"agent": AGENT}),
        ("/search", {"trigger": TASK}),
        ("/search", {"agent": AGENT, "trigger": ""}),
        ("/search", {"agent": AGENT, "trigger": TASK, "min_similarity": 2}),
        ("/search", {"agent": AGENT, "trigger": TASK, "limit": 0}),
        ("/search", {"agent": AGENT, "trigger": TASK, "colour": "red"}),
        (f"/{NOBODY}/pin", {"version": 0}),
        (f"/{NOBODY}/pin", {"version": 2**40}),
        (f"/{NOBODY}/pin", {}),
        ("/nonsense/retire", {}),
    ],
)
async def test_bad_requests_are_refused(path: str, body: dict[str, Any], alice: User):
    await post(alice, path, status=422, **body)


async def test_a_secret_in_a_search_reaches_no_embedder(alice: User):
    await learn(alice, "Mail [REDACTED:email] the report")
    found = await post(alice, "/search", agent=AGENT, trigger="Mail ada@example.org the report", min_similarity=-1)
    plain = await post(alice, "/search", agent=AGENT, trigger="Mail [REDACTED:email] the report", min_similarity=-1)
    assert found["procedures"] == plain["procedures"] != []
