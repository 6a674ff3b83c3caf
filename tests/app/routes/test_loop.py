"""The loop over HTTP: retain, work, retrieve, reward, and what each leaves behind."""

import math
import re
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policy import features
from retrieval.sections.cases import CasesSection, Remembered
from retrieval.sections.context import CLOSING, OPENING, memory_context
from retrieval.tokens import count_tokens
from tests.app.routes.conftest import STEPS, TASKS, fill, ids, reuse
from tests.service import AGENT, User

# Retain, retrieve, reward


async def test_a_run_is_found_once_the_worker_has_it_and_its_reward_becomes_its_record(alice: User):
    case_id = await alice.retain("water the garden", plan=STEPS, tags=["green"])
    await alice.settle()
    answer = await alice.retrieve("the garden is dry")
    (slot,) = answer["cases"]
    assert (slot["case_id"], slot["task"], slot["plan"]) == (case_id, "water the garden", STEPS)
    assert (slot["outcome"], slot["reward"], slot["tags"]) == ("success", 1.0, ["green"])
    assert await reuse(alice, case_id) == (0, 0)
    await alice.feedback(retrieval_id=answer["retrieval_id"], reward=0.25, source="user")
    assert await reuse(alice, case_id) == (1, 0.25)


async def test_a_case_that_served_well_moves_up(alice: User):
    ids_of = await fill(alice, ["paint the north wall", "paint the south wall"])
    slate = ids(await alice.retrieve("paint the wall"))
    assert set(slate) == set(ids_of)
    for _ in range(5):
        answer = await alice.retrieve("paint the wall")
        body = {"retrieval_id": answer["retrieval_id"], "used_case_ids": [slate[1]], "reward": 1.0}
        await alice.retain(f"repot fern {answer['retrieval_id']}", **body)
        await alice.settle()
    assert [each for each in ids(await alice.retrieve("paint the wall")) if each in slate] == slate[::-1]


async def test_a_case_that_a_run_followed_earns_its_reward_though_the_backend_does_not_say_what_it_used(alice: User):
    calls = {
        "paint the north wall": [{"tool": "paint", "status": "ok"}],
        "paint the south wall": [{"tool": "call_a_painter", "status": "ok"}],
    }
    followed, beside = [await alice.retain(task, tool_traces=traces) for task, traces in calls.items()]
    await alice.settle()
    answer = await alice.retrieve("paint the wall")
    body = {"retrieval_id": answer["retrieval_id"], "tool_traces": calls["paint the north wall"], "reward": 1.0}
    await alice.retain("paint the west wall", **body)
    await alice.settle()
    told = (await alice.http.get(f"/v1/decisions/{answer['retrieval_id']}")).json()
    assert {each["case_id"]: each["agreed"] for each in told["candidates"]} == {followed: 1, beside: 0}
    assert await reuse(alice, followed) == pytest.approx((1.01 / 1.02, 1.01 / 1.02))
    assert await reuse(alice, beside) == pytest.approx((0.01 / 1.02, 0.01 / 1.02))


@pytest.mark.parametrize(("thumb", "reward"), [("up", 1.0), ("down", 0.0)])
async def test_a_thumb_is_a_reward_of_one_or_nothing(thumb: str, reward: float, alice: User):
    (case_id,) = await fill(alice, ["water the garden"], reward=0.5)
    counts = await alice.feedback(case_id=case_id, thumb=thumb)
    assert (counts["reward"], counts["source"]) == (reward, "user")
    case = await alice.case(case_id)
    assert (case["reward"], case["reward_source"]) == (reward, "user")


@pytest.mark.parametrize(
    ("run", "reward"),
    [
        ({"outcome": "success"}, 1.0),
        ({"outcome": "partial"}, 0.5),
        ({"outcome": "failure"}, 0.0),
        ({"tool_traces": [{"tool": "sql", "status": "error"}]}, 0.5),
        ({"tool_traces": [{"tool": "sql", "status": "error"}, {"tool": "sql"}]}, 1.0),
        ({"tool_traces": [{"tool": "sql", "status": "error"}, {"tool": "mail"}]}, 0.5),
    ],
)
async def test_a_run_without_a_reward_gets_a_heuristic_one(run: dict[str, Any], reward: float, alice: User):
    case = await alice.case(await alice.retain("water the garden", **run))
    assert (case["reward"], case["reward_source"]) == (reward, "heuristic")


async def test_a_reward_without_a_source_is_the_runs_own_word(alice: User):
    case = await alice.case(await alice.retain("water the garden", reward=0.75))
    assert (case["reward"], case["reward_source"]) == (0.75, "heuristic")


async def test_the_newest_trusted_reward_counts_and_the_history_stays(alice: User):
    alice = await alice.backend()
    case_id = await alice.retain("water the garden")
    counted = [
        (await alice.feedback(case_id=case_id, reward=reward, source=source))["reward"]
        for source, reward in [("heuristic", 0.5), ("judge", 0.25), ("heuristic", 1), ("user", 0.75), ("metric", 0.5)]
    ]
    assert counted == [0.5, 0.25, 0.25, 0.75, 0.5]
    assert (await alice.case(case_id))["reward_source"] == "metric"
    history = await alice.rows(
        "SELECT reward, source FROM rewards WHERE user_sub = :user_sub AND case_id = :id ORDER BY created_at, id",
        id=UUID(case_id),
    )
    assert [row.reward for row in history] == [1, 0.5, 0.25, 1, 0.75, 0.5]
    assert [row.source for row in history] == ["heuristic", "heuristic", "judge", "heuristic", "user", "metric"]


async def test_a_repeat_with_a_guessed_reward_does_not_dilute_a_trusted_one(alice: User):
    (case_id,) = await fill(alice, ["water the garden"])
    await alice.feedback(case_id=case_id, reward=0.25)
    await fill(alice, ["water the garden"])
    case = await alice.case(case_id)
    assert (case["occurrences"], case["reward"], case["reward_source"]) == (2, 0.25, "user")


async def test_a_repeat_with_a_trusted_reward_replaces_a_guess_and_averages_with_a_trusted_one(alice: User):
    alice = await alice.backend()
    (case_id,) = await fill(alice, ["water the garden"])
    await fill(alice, ["water the garden"], reward=0.25, reward_source="judge")
    case = await alice.case(case_id)
    assert (case["occurrences"], case["reward"], case["reward_source"]) == (2, 0.25, "judge")
    await fill(alice, ["water the garden"], reward=1.0, reward_source="metric")
    case = await alice.case(case_id)
    assert (case["occurrences"], case["reward"], case["reward_source"]) == (3, 0.625, "judge")


async def test_a_retain_on_a_retrieval_credits_only_the_cases_it_used(alice: User):
    await fill(alice)
    answer = await alice.retrieve("restart the server")
    first, second, *rest = ids(answer)
    used = {"retrieval_id": answer["retrieval_id"], "used_case_ids": [first, second]}
    done = await alice.retain("restart the other server", reward=0.5, **used)
    await alice.settle()
    assert [await reuse(alice, case_id) for case_id in (first, second)] == [(0.5, 0.25)] * 2
    assert {await reuse(alice, case_id) for case_id in rest} == {(0, 0)}
    case = await alice.case(done)
    assert case["retrieval_id"] == answer["retrieval_id"]
    assert case["reference_case_ids"] == [first, second]


@pytest.mark.parametrize("said", [{}, {"used_case_ids": None}], ids=str)
async def test_where_no_case_is_named_the_slate_shares_the_credit(said: dict[str, Any], alice: User):
    await fill(alice)
    answer = await alice.retrieve("restart the server")
    assert len(ids(answer)) == 4
    await alice.retain("restart the other server", retrieval_id=answer["retrieval_id"], reward=0.5, **said)
    await alice.settle()
    assert {await reuse(alice, case_id) for case_id in ids(answer)} == {(0.25, 0.125)}


async def test_where_the_run_used_none_no_case_gets_credit(alice: User):
    await fill(alice)
    answer = await alice.retrieve("restart the server")
    await alice.retain("restart another", retrieval_id=answer["retrieval_id"], used_case_ids=[], reward=1.0)
    await alice.settle()
    assert {await reuse(alice, case_id) for case_id in ids(answer)} == {(0, 0)}


async def test_the_description_of_the_api_says_who_is_credited_by_null_and_by_an_empty_list(alice: User):
    schemas = (await alice.http.get("/openapi.json")).json()["components"]["schemas"]
    fields = schemas["FinishedRun"]["properties"]
    for name in ("used_case_ids", "used_procedure_ids"):
        assert "null" in fields[name]["description"]
        assert "[]" in fields[name]["description"]


async def test_repeated_feedback_is_recomputed_and_not_added_up(alice: User):
    (case_id,) = await fill(alice, ["water the garden"])
    retrieval_id = (await alice.retrieve("water"))["retrieval_id"]
    for reward in (1.0, 1.0, 0.5):
        await alice.feedback(retrieval_id=retrieval_id, reward=reward)
        assert await reuse(alice, case_id) == (1, reward)
    await alice.feedback(retrieval_id=retrieval_id, reward=1.0, source="heuristic")
    assert await reuse(alice, case_id) == (1, 0.5)


async def test_what_looks_secret_is_taken_out_and_reported(alice: User):
    body = {"agent": AGENT, "outcome": "success", "task": "write to ada@example.com", "plan": ["ask bob@example.com"]}
    answer = (await alice.http.post("/v1/retain", json=body)).json()
    assert answer["redactions"] == [{"kind": "email", "count": 2}]
    case = await alice.case(answer["case_id"])
    assert "@example.com" not in str(case)
    await alice.retrieve("what did ada@example.com say")
    assert "@example.com" not in str(await alice.queries())


# The slate


@pytest.mark.parametrize(
    ("filters", "places"),
    [
        ({}, {0, 1, 2}),
        ({"tags": ["a"]}, {0, 1}),
        ({"tags": ["a", "b"]}, {0}),
        ({"tags": ["c"]}, set()),
        ({"outcomes": ["partial"]}, {1}),
        ({"outcomes": ["success", "partial"]}, {0, 1, 2}),
        ({"kinds": ["subtask"]}, {2}),
        ({"kinds": ["task"], "tags": ["b"]}, {0}),
        ({"kinds": ["tool"]}, set()),
    ],
)
async def test_filters_let_only_matching_cases_on_the_slate(filters: dict[str, Any], places: set[int], alice: User):
    cases = [
        await alice.retain(TASKS[0], tags=["a", "b"]),
        await alice.retain(TASKS[1], tags=["a"], outcome="partial"),
    ]
    cases.append(await alice.retain(TASKS[2], kind="subtask", parent_case_id=cases[0]))
    await alice.settle()
    assert set(ids(await alice.retrieve("server", filters=filters))) == {cases[place] for place in places}


async def test_cases_below_the_least_similarity_stay_away(alice: User):
    await fill(alice)
    everything = (await alice.retrieve("restart the web server", k=50))["cases"]
    similarities = sorted(slot["similarity"] for slot in everything)
    assert len(set(similarities)) == len(TASKS)
    for bound in (similarities[0], similarities[3], 1.0):
        slots = (await alice.retrieve("restart the web server", k=50, min_similarity=bound))["cases"]
        expected = {slot["case_id"] for slot in everything if slot["similarity"] >= bound}
        assert {slot["case_id"] for slot in slots} == expected


async def test_a_profile_that_is_switched_off_answers_nothing_until_it_is_on_again(alice: User):
    (case_id,) = await fill(alice, ["water the garden"])
    await alice.http.put(f"/v1/profiles/{AGENT}", json={"enabled": False})
    answer = await alice.retrieve("water")
    assert (answer["mode"], answer["cases"], answer["memory_context"], answer["tokens"]) == ("off", [], "", 0)
    assert answer["why_empty"] == "memory is switched off for this agent"
    await alice.http.put(f"/v1/profiles/{AGENT}", json={"enabled": True})
    assert ids(await alice.retrieve("water")) == [case_id]


WRITES = [
    ("/v1/retain", {"task": "water the lawn"}),
    ("/v1/sessions/off/turns", {"turns": [{"role": "user", "content": "water the lawn"}]}),
    ("/v1/runs/01990a51-5f10-7c22-8d41-9c1e2a3b4c5d/steps", {"task": "t", "steps": [{"number": 1, "tool": "hose"}]}),
    ("/v1/facts", {"kind": "goal", "text": "I want a green lawn"}),
]


@pytest.mark.parametrize(("path", "body"), WRITES)
async def test_a_profile_that_is_switched_off_stores_nothing_until_it_is_on_again(
    alice: User, path: str, body: dict[str, Any]
):
    for off in ({"enabled": False}, {"enabled": True, "writing": False}):
        shown = (await alice.http.put(f"/v1/profiles/{AGENT}", json=off)).json()
        assert (shown["enabled"], shown["writing"]) == (off["enabled"], False)
        answer = await alice.http.post(path, json={"agent": AGENT, **body})
        assert (answer.status_code, answer.json()["type"]) == (409, "urn:casebank:problem:memory-off")
    for table in ("cases", "turns", "run_steps", "facts"):
        assert await alice.rows(f"SELECT user_sub FROM {table} WHERE user_sub = :user_sub") == []  # noqa: S608
    await alice.http.put(f"/v1/profiles/{AGENT}", json={"enabled": True})
    assert (await alice.http.post(path, json={"agent": AGENT, **body})).is_success


async def test_reading_alone_can_be_switched_off(alice: User):
    await alice.http.put(f"/v1/profiles/{AGENT}", json={"enabled": False, "writing": True})
    await fill(alice, ["water the garden"])
    assert (await alice.retrieve("water the garden"))["mode"] == "off"


async def test_what_is_asked_while_memory_is_off_is_not_kept(alice: User):
    await alice.http.put(f"/v1/profiles/{AGENT}", json={"enabled": False})
    await alice.retrieve("water the garden")
    await alice.retrieve("water the garden", memory=False)
    assert await alice.queries() == [("", None)] * 2


async def test_a_repeat_of_a_run_that_was_acknowledged_stays_so_where_memory_is_off(alice: User):
    case_id = await alice.retain("water the garden", key="k")
    await alice.http.put(f"/v1/profiles/{AGENT}", json={"enabled": False})
    assert await alice.retain("water the garden", key="k") == case_id


async def test_the_profile_sets_the_length_of_the_slate_and_the_request_may_override_it(alice: User):
    await fill(alice)
    assert len(ids(await alice.retrieve("server"))) == 4
    answer = (await alice.http.put(f"/v1/profiles/{AGENT}", json={"k": 2})).json()
    assert (answer["k"], answer["window_size"]) == (2, 200)
    assert len(ids(await alice.retrieve("server"))) == 2
    assert len(ids(await alice.retrieve("server", k=5))) == 5


def rrf(slot: dict[str, Any], full_text_weight: float, semantic_weight: float, rrf_k: float) -> float:
    """Weight over (constant + rank), summed over the searches, by hand."""
    terms = [(full_text_weight, slot["keyword_rank"]), (semantic_weight, slot["semantic_rank"])]
    return sum(weight / (rrf_k + rank) for weight, rank in terms if rank is not None)


@pytest.mark.parametrize(
    "weights",
    [{}, {"full_text_weight": 3}, {"semantic_weight": 0.25}, {"rrf_k": 1}, {"full_text_weight": 0, "rrf_k": 7.5}],
)
async def test_rrf_is_the_formula_over_the_ranks(weights: dict[str, float], alice: User):
    await fill(alice)
    query = "restart the backup server"
    expected = {"full_text_weight": 1, "semantic_weight": 1, "rrf_k": 50, **weights}
    asked = (await alice.retrieve(query, k=50, **weights))["cases"]
    assert sorted(slot["semantic_rank"] for slot in asked) == list(range(1, len(TASKS) + 1))
    matching = [slot["keyword_rank"] for slot in asked if slot["keyword_rank"]]
    assert sorted(matching) == list(range(1, len(TASKS) + 1))  # "server" is in all of them
    assert [slot["rrf"] for slot in asked] == pytest.approx([rrf(slot, **expected) for slot in asked])


async def test_similarity_falls_as_the_semantic_rank_rises(alice: User):
    await fill(alice)
    slots = sorted((await alice.retrieve(TASKS[3], k=50))["cases"], key=lambda slot: slot["semantic_rank"])
    similarities = [slot["similarity"] for slot in slots]
    assert similarities == sorted(similarities, reverse=True)
    assert (slots[0]["task"], similarities[0]) == (TASKS[3], pytest.approx(1, abs=1e-5))


async def test_at_most_one_failed_case_is_on_the_slate_and_is_marked(alice: User):
    for number, outcome in enumerate(["failure", "aborted", "failure", "success"]):
        await alice.retain(f"{TASKS[number]} on the web server", outcome=outcome)
    await alice.settle()
    answer = await alice.retrieve("web server", k=10)
    failed = [slot for slot in answer["cases"] if slot["outcome"] != "success"]
    assert len(failed) == 1
    assert len(answer["cases"]) == 2
    assert "this run failed" in failed[0]["why"]
    assert answer["memory_context"].count("failure (what it did was wrong or not enough)") == 1
    assert not any("this run failed" in slot["why"] for slot in answer["cases"] if slot["outcome"] == "success")


async def test_near_duplicates_do_not_fill_the_slate(alice: User):
    same = "restart the web server of the shop after the weekly maintenance window in rack {}"
    racks = ["seven", "Amsterdam", "blue", "Zanzibar", "copper", "nineteen"]
    await fill(alice, [same.format(rack) for rack in racks], plan=STEPS)
    assert len(await alice.cases()) > 2
    other = await alice.retain("restart the mail server", plan=["call the provider"])
    await alice.settle()
    slate = await alice.retrieve("restart the web server", k=4)
    assert len(slate["cases"]) == 2
    assert other in ids(slate)


async def test_the_decision_is_logged_as_it_was_answered(alice: User):
    await fill(alice)
    answer = await alice.retrieve("restart the server", k=3, explain=True)
    decisions = await alice.rows("SELECT * FROM decisions WHERE user_sub = :user_sub")
    slots = await alice.rows("SELECT * FROM decision_slots WHERE user_sub = :user_sub ORDER BY place")
    (decision,) = decisions
    assert str(decision.id) == answer["retrieval_id"]
    assert (decision.query, decision.mode, decision.degraded) == ("", "hybrid", [])
    words = alice.service.runtime.keyring.remembered(alice.name)
    assert words is not None
    assert words.open_query(decision._mapping)["query"] == "restart the server"  # noqa: SLF001
    assert (decision.policy_version, decision.tokens) == (answer["policy_version"], answer["tokens"])
    assert decision.feature_version == features.VERSION
    assert (decision.arm, decision.k, decision.min_similarity, decision.slate_propensity) == ("default", 3, None, 1)
    assert not hasattr(decision, "query_vector"), "it can be computed again from the query"
    assert len(decision.candidate_ids) == len(decision.scores) == len(TASKS)
    assert decision.candidate_groups == list(range(len(TASKS)))  # each of them says something else
    assert decision.candidate_sources == [0] * len(TASKS)
    seen = features.unpacked(decision.features)
    assert seen.shape == (len(TASKS), len(features.NAMES))
    assert [(slot.place, str(slot.case_id)) for slot in slots] == list(enumerate(ids(answer), start=1))
    assert [slot.propensity for slot in slots] == [slot["propensity"] for slot in answer["cases"]]
    assert all(0 < slot.propensity <= 1 for slot in slots)
    for slot in answer["cases"]:
        row = decision.candidate_ids.index(UUID(slot["case_id"]))
        logged = dict(zip(features.NAMES, seen[row].tolist(), strict=True))
        assert {name: slot["explain"][name] for name in logged} == pytest.approx(
            {name: None if math.isnan(value) else value for name, value in logged.items()}
        )
        for name in ("similarity", "reward"):
            assert logged[name] == pytest.approx(slot[name], rel=2**-11)  # half precision
        assert slot["explain"]["score"] == pytest.approx(decision.scores[row], rel=1e-5)


async def test_an_empty_slate_is_a_decision_too(alice: User):
    answer = await alice.retrieve("anything")
    rows = await alice.rows("SELECT id, mode FROM decisions WHERE user_sub = :user_sub")
    assert [(str(row.id), row.mode) for row in rows] == [(answer["retrieval_id"], "empty")]
    assert answer["why_empty"] == "no case was found: the agent has none yet, or none fits the request"
    await alice.feedback(retrieval_id=answer["retrieval_id"], thumb="down")


async def test_explain_is_told_on_request_only(alice: User):
    await fill(alice, ["water the garden"])
    (told,) = (await alice.retrieve("water", explain=True))["cases"]
    (untold,) = (await alice.retrieve("water"))["cases"]
    assert untold["explain"] is None
    terms = {"prior", "residual", "spread", "score"}
    assert set(told["explain"]) == set(features.NAMES) | terms
    assert told["explain"]["score"] == told["explain"]["prior"] == told["explain"]["order"] == 0  # the first of one
    assert (told["explain"]["residual"], told["explain"]["spread"], told["q_value"]) == (0, 0, None)


# The context


async def test_a_budget_of_nothing_gives_an_empty_context(alice: User):
    await fill(alice, ["water the garden"])
    answer = await alice.retrieve("water", token_budget=0)
    assert (answer["memory_context"], answer["tokens"], len(answer["cases"])) == ("", 0, 1)


async def test_a_small_budget_cuts_the_context_and_not_the_slate(alice: User):
    await fill(alice)
    whole = await alice.retrieve("restart the server")
    cut = await alice.retrieve("restart the server", token_budget=whole["tokens"] - 1)
    assert ids(cut) == ids(whole)
    assert whole["memory_context"].count("Context: ") == 4
    assert cut["memory_context"].count("Context: ") == 4  # shortened, before any is left out
    least = await alice.retrieve("restart the server", token_budget=cut["tokens"] // 2)
    assert ids(least) == ids(whole)
    assert 0 < least["memory_context"].count("Context: ") < 4
    assert whole["tokens"] == count_tokens(whole["memory_context"])
    assert cut["tokens"] == count_tokens(cut["memory_context"]) < whole["tokens"]


@pytest.mark.parametrize("budget", [1500, 600, 300, 200])
async def test_two_cases_are_shortened_before_either_is_left_out(budget: int, alice: User):
    steps = [
        f"step {number} looks at the {word} of the server at length" for number in range(60) for word in ("log", "disk")
    ]
    for task in ("restart the web server ", "upgrade the web server "):
        await alice.retain(task + "with all that belongs to it " * 50, plan=[f"{task} {step}" for step in steps])
    await alice.settle()
    answer = await alice.retrieve("the web server", token_budget=budget)
    assert len(answer["cases"]) == 2
    assert answer["memory_context"].count("Context: ") == 2
    assert answer["tokens"] <= budget


async def test_the_context_tells_context_actions_outcome_and_reward(alice: User):
    await fill(alice, ["water the garden"], plan=STEPS, reward=0.75)
    text = (await alice.retrieve("water"))["memory_context"]
    for line in (
        '[1] Context: "water the garden"',
        'Actions: ["open the valve", "wait", "close the valve"]',
        "Outcome: success",
        "Reward: 0.75",
        "not instructions",
    ):
        assert line in text


TAG = re.compile(r"<[\s/]*casebank_memory", re.IGNORECASE)
TRICKS = ["</casebank_memory>", "< / Casebank_Memory >", "<casebank_memory", "<</casebank_memory>", "&lt;", "\n[9] "]
words = st.lists(st.one_of(st.text(max_size=20), st.sampled_from(TRICKS)), min_size=1, max_size=4).map("".join)
remembered = st.builds(
    Remembered,
    task=words,
    plan=st.lists(words, max_size=3),
    outcome=st.sampled_from(["success", "failure", "partial", "aborted"]),
    reward=st.none() | st.floats(0, 1),
)


@given(st.lists(remembered, max_size=5), st.integers(0, 400))
def test_the_context_keeps_to_the_budget_and_ends_where_it_says(cases: list[Remembered], budget: int):
    context = memory_context(budget, CasesSection(cases))
    assert context.tokens == count_tokens(context.text) <= budget
    assert (context.tokens == 0) == (context.text == "")
    if context.text:
        assert context.text.startswith(OPENING)
        assert [match.start() for match in TAG.finditer(context.text)] == [0, len(context.text) - len(CLOSING)]


@given(st.lists(remembered, min_size=1, max_size=3))
def test_the_context_is_as_long_as_the_budget_allows(cases: list[Remembered]):
    whole = memory_context(10**9, CasesSection(cases))
    assert whole.text.count("] Context: ") >= len(cases)
    assert memory_context(whole.tokens, CasesSection(cases)) == whole
    assert memory_context(whole.tokens - 1, CasesSection(cases)).tokens < whole.tokens
