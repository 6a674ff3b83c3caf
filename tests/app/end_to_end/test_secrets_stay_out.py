"""A secret goes in by every field of every route that takes one, and no text column of the database holds it."""

from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import asyncpg
import pytest
from sqlalchemy import ARRAY, Text
from sqlalchemy.dialects.postgresql import JSONB

from app.main import create_app
from app.postgres.pools import dsn
from retrieval.tables.metadata import metadata
from tests.service import AGENT, Service, User
from writer.author import Author
from writer.knowledge.entry import KnowledgeWritten
from writer.knowledge.shared import write_shared

SECRET = "ghp_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1dE3fG5"

TEXT = "the caller's text"
RUN = "made of a run's redacted text"
NAME = "names a user, an agent or who acted: a subject of a token, or refused if it looks like a secret"
FIXED = "one of a few words of our own"

COLUMNS = {
    "audit.action": FIXED,
    "audit.actor": NAME,
    "advice.agent_key": NAME,
    "advice.user_sub": NAME,
    "audit.agent_key": NAME,
    "audit.payload": RUN,
    "case_embeddings.agent_key": NAME,
    "case_embeddings.model": FIXED,
    "case_embeddings.user_sub": NAME,
    "case_tools.agent_key": NAME,
    "case_tools.failures": RUN,
    "case_tools.forms": RUN,
    "case_tools.tool": RUN,
    "case_tools.user_sub": NAME,
    "cases.agent_key": NAME,
    "cases.effects": RUN,
    "cases.idempotency_key": "the caller's key, hashed if it looks like a secret",
    "cases.kind": FIXED,
    "cases.last_error": "an error's type, never its message",
    "cases.outcome": FIXED,
    "cases.plan": TEXT,
    "cases.reward_source": FIXED,
    "cases.search_text": "empty: a trigger indexes it and empties it",
    "cases.source": NAME,
    "cases.status": FIXED,
    "cases.tags": TEXT,
    "cases.task": TEXT,
    "cases.tools": TEXT,
    "decisions.agent_key": NAME,
    "decisions.arm": FIXED,
    "decisions.degraded": FIXED,
    "decisions.mode": FIXED,
    "decisions.policy_version": FIXED,
    "decisions.query": TEXT,
    "decisions.reward_source": FIXED,
    "decisions.rewritten": RUN,
    "erasure_heads.chain": FIXED,
    "erasure_links.user_sha256": "a sha256",
    "erasures.receipt": FIXED,
    "erasures.user_sub": "a sha256",
    "failures.agent_key": NAME,
    "failures.user_sub": NAME,
    "findings.agent_key": NAME,
    "findings.kind": FIXED,
    "findings.user_sub": NAME,
    "installation_keys.name": FIXED,
    "jobs.last_error": "an error's type, never its message",
    "jobs.name": FIXED,
    "llm_usage.agent_key": NAME,
    "llm_usage.purpose": FIXED,
    "master_keys.fingerprint": "of a key of the service",
    "master_keys.replaces": "of a key of the service",
    "master_keys.status": FIXED,
    "token_revocations.why": "the operator's words, redacted",
    "user_keys.master_key": "of a key of the service",
    "rate_limits.user_sub": NAME,
    "policies.agent_key": NAME,
    "policies.metrics": "numbers",
    "policies.status": FIXED,
    "policies.verdict": "numbers, and sentences of our own",
    "procedure_reviews.actor": NAME,
    "procedure_reviews.note": TEXT,
    "procedure_reviews.user_sub": NAME,
    "procedure_reviews.verdict": FIXED,
    "procedures.agent_key": NAME,
    "procedures.domain": RUN,
    "procedures.embedding_model": FIXED,
    "procedures.kind": FIXED,
    "procedures.level": FIXED,
    "procedures.origin": FIXED,
    "procedures.query_kind": RUN,
    "procedures.record": RUN,
    "procedures.search_text": RUN,
    "procedures.status": FIXED,
    "procedures.task_type": RUN,
    "procedures.trigger": RUN,
    "profiles.abstraction": FIXED,
    "profiles.agent_key": NAME,
    "profiles.analyst": FIXED,
    "profiles.embedding_model": FIXED,
    "profiles.rewrite": FIXED,
    "profiles.session_summary": FIXED,
    "session_summaries.user_sub": NAME,
    "profiles.tool_kinds": TEXT,
    "run_steps.user_sub": NAME,
    "facts.agent_key": NAME,
    "facts.category": NAME,
    "facts.kind": FIXED,
    "facts.origin": FIXED,
    "facts.said_by": FIXED,
    "facts.user_sub": NAME,
    "knowledge.agent_key": NAME,
    "knowledge.category": NAME,
    "knowledge.entry_type": NAME,
    "knowledge.user_sub": NAME,
    "reflections.agent_key": NAME,
    "reflections.last_error": "an error's type, never its message",
    "reflections.status": FIXED,
    "reflections.user_sub": NAME,
    "checkpoints.agent_key": NAME,
    "checkpoints.user_sub": NAME,
    "inserted_memories.agent_key": NAME,
    "inserted_memories.content": "stripped by the trigger that inserts it",
    "inserted_memories.last_error": "an error's type, never its message",
    "inserted_memories.metadata": "stripped by the trigger that inserts it",
    "inserted_memories.status": FIXED,
    "inserted_memories.user_sub": NAME,
    "memories.agent_key": NAME,
    "memories.kind": FIXED,
    "memories.last_error": "an error's type, never its message",
    "memories.model": FIXED,
    "memories.search_text": "empty: a trigger indexes it and empties it",
    "memories.status": FIXED,
    "memories.user_sub": NAME,
    "sessions.agent_key": NAME,
    "sessions.last_error": "an error's type, never its message",
    "sessions.status": FIXED,
    "shared_knowledge.agent_key": NAME,
    "shared_knowledge.category": NAME,
    "shared_knowledge.entry_type": NAME,
    "shared_knowledge.text": TEXT,
    "shared_knowledge.title": TEXT,
    "shared_memories.agent_key": NAME,
    "shared_memories.model": FIXED,
    "shared_memories.search_text": "empty: a trigger indexes it and empties it",
    "sessions.name": NAME,
    "sessions.user_sub": NAME,
    "turns.call_key": "the caller's key, hashed if it looks like a secret",
    "turns.user_sub": NAME,
    "replays.agent_key": NAME,
    "replays.serves": FIXED,
    "replays.tallies": "numbers of replay, by names of orders",
    "replays.user_sub": NAME,
    "runs.agent_key": NAME,
    "runs.status": FIXED,
    "runs.user_sub": NAME,
    "rewards.actor": NAME,
    "rewards.source": FIXED,
    **{
        f"{table}.user_sub": NAME
        for table in (
            "audit",
            "audit_heads",
            "audit_links",
            "cases",
            "decisions",
            "decision_slots",
            "llm_usage",
            "policies",
        )
    },
    **{f"{table}.user_sub": NAME for table in ("procedures", "profiles", "rewards", "user_keys")},
}
"""What stands in each text column."""


def _is_text(kind: object) -> bool:
    return isinstance(kind, Text | JSONB) or (isinstance(kind, ARRAY) and isinstance(kind.item_type, Text))


def test_of_every_text_column_it_is_said_why_no_secret_stands_in_it() -> None:
    columns = {f"{column.table.name}.{column.name}" for table in metadata.tables.values() for column in table.columns}
    kinds = {
        f"{column.table.name}.{column.name}": column.type
        for table in metadata.tables.values()
        for column in table.columns
    }
    assert {name for name in columns if _is_text(kinds[name])} == set(COLUMNS)


def _trace(status: str, tool: str = f"deploy {SECRET}") -> dict[str, Any]:
    said = f"password=hunter2x and {SECRET}"
    return {"tool": tool, "input": {"key": said, SECRET: 1}, "output": {"error": said}, "status": status}


async def _give_everywhere(user: User) -> None:
    """Calls every route that writes with the secret in every field that takes a text."""
    retrieved = await user.retrieve(f"deploy with {SECRET}", filters={"tags": [SECRET]}, rewrite="llm")
    record = dict.fromkeys(
        (
            "procedure_name",
            "semantic_description",
            "initial_failure_summary",
            "identified_root_cause",
            "successful_intervention",
            "example_scenario_abstract",
        ),
        f"deploy with {SECRET}",
    )
    learned = {**record, "learned_procedure_steps": [f"use {SECRET}"], "critical_contextual_cues": [SECRET]}
    for number, procedure in enumerate((None, {"status": "procedure_learned", "data": learned})):
        case = await user.retain(
            f"deploy {number} with {SECRET}",
            key=f"run-{number}-{SECRET}",
            plan=[f"first {SECRET}", {"step": f"then look at {SECRET}"}],
            files=[f"notes/{SECRET}.md"],
            tags=[SECRET],
            tool_traces=[_trace("error"), _trace("ok"), _trace("ok", "look")],
            turns=[{"role": f"user {SECRET}", "content": [{"text": SECRET}]}],
            prompt_snapshot={SECRET: SECRET},
            procedure=procedure,
            retrieval_id=retrieved["retrieval_id"],
        )
    memory = {"agent": AGENT, "content": f"a memory of {SECRET}", "metadata": {"data": learned}, "embedding": [SECRET]}
    answer = await user.http.post("/rest/v1/context_eng_memories", json=memory)
    assert answer.status_code == 201, answer.text
    answer = await user.http.put(f"/v1/profiles/{AGENT}", json={"tool_kinds": {f"read {SECRET}": "read"}})
    assert answer.status_code == 200, answer.text
    run_id = uuid4()
    steps = [{"number": number, **_trace("ok")} for number in (1, 2)]
    body = {"agent": AGENT, "task": f"deploy with {SECRET}", "steps": steps}
    told = await user.http.post(f"/v1/runs/{run_id}/steps", json=body)
    assert told.status_code == 200, told.text
    assert SECRET not in told.text + (await user.http.get(f"/v1/runs/{run_id}")).text
    assert "hunter2x" not in (await user.http.get(f"/v1/runs/{run_id}")).text
    known = await user.http.post(f"/v1/runs/{run_id}/known", json={"tool": f"deploy {SECRET}", "query": SECRET})
    assert known.status_code == 200, known.text
    assert SECRET not in known.text + (await user.http.get(f"/v1/runs/{run_id}/summary")).text
    await user.retain(f"deploy step by step with {SECRET}", run_id=str(run_id))
    said = [{"role": f"user {SECRET}", "content": [{"text": f"password=hunter2x and {SECRET}"}], "name": SECRET}]
    path, key = "/v1/sessions/a chat", {"Idempotency-Key": SECRET}
    told = await user.http.post(f"{path}/turns", json={"agent": AGENT, "turns": said}, headers=key)
    assert told.status_code == 200, told.text
    fact = {"agent": AGENT, "kind": "fact", **dict.fromkeys(("text", "subject", "attribute", "value", "unit"), SECRET)}
    known = await user.http.post("/v1/facts", json=fact)
    assert known.status_code == 201, known.text
    entry = {"agent": AGENT, "category": "keys", "title": SECRET, "text": SECRET}
    written = await user.http.post("/v1/knowledge", json=entry)
    assert written.status_code == 201, written.text
    runtime = user.service.runtime
    operator = Author("operator", "operator", datetime.now(UTC))
    await write_shared(runtime.database, AGENT, [KnowledgeWritten.model_validate(entry)], operator)
    seen = (await user.http.get(path)).text + known.text + written.text
    assert SECRET not in told.text + seen
    assert "hunter2x" not in seen
    await _give_as_a_model_would(user)
    await user.settle()
    await user.feedback(case_id=case, reward=1)
    answer = await user.http.patch(f"/v1/cases/{case}", json={"tags": [SECRET, "kept"]})
    assert answer.status_code == 200, answer.text
    assert SECRET not in (await user.http.get(f"/v1/cases/{case}")).text
    (drawn,) = (await user.http.get("/v1/procedures/sample", params={"n": 1})).json()["procedures"]
    said = {"verdict": "wrong", "note": f"it says {SECRET}", "version": drawn["version"]}
    answer = await user.http.post(f"/v1/procedures/{drawn['id']}/review", json=said)
    assert answer.status_code == 200, answer.text
    for path in ("/v1/rewrite", "/functions/v1/hybrid-search-context-eng"):
        assert SECRET not in (await user.http.post(path, json={"agent": AGENT, "query": SECRET})).text


async def _give_as_a_model_would(user: User) -> None:
    """Calls every memory tool with the secret in every argument that takes a text; none of the answers holds it."""
    said = f"deploy with password=hunter2x and {SECRET}"
    run = {"kind": "run", "text": said, "outcome": "success", "steps": [said]}
    for name, given in (
        ("remember", {"kind": "fact", "text": said}),
        ("remember", run),
        ("get_my_goals", {"query": said}),
        ("get_tool_suggestions", {"query": said}),
        ("get_tool_suggestions", {"query": said, "tool": "sh", "input": said, "error": f"Error: {said}"}),
        ("recall", {"query": said}),
    ):
        answer = await user.http.post(f"/v1/memory-tools/{name}", params={"agent": AGENT}, json=given)
        assert answer.status_code == 200, answer.text
        assert SECRET not in answer.text
        assert "hunter2x" not in answer.text


@pytest.mark.parametrize("seal", ["all", "payload"])
async def test_no_text_column_holds_a_secret_that_came_in_by_any_field(
    seal: str, service: Service, database_url: str
) -> None:
    app = create_app(service.settings.model_copy(update={"seal": seal}))
    async with AsyncExitStack() as clients, app.router.lifespan_context(app):
        await _give_everywhere(await Service(app, service.settings, clients).user())
    connection = await asyncpg.connect(dsn(database_url))
    try:
        redacted = set()
        for name in COLUMNS:
            table, column = name.split(".")
            rows = await connection.fetch(f"SELECT {column}::text FROM {table} WHERE {column} IS NOT NULL")  # noqa: S608 - our names
            texts = [row[0] for row in rows]
            assert not [text for text in texts if SECRET in text or "hunter2x" in text], name
            redacted |= {name for text in texts if "[REDACTED:" in text}
    finally:
        await connection.close()
    if seal == "payload":  # the words stand in their columns, to be searched here
        assert {name for name, why in COLUMNS.items() if why == TEXT} <= redacted


@pytest.mark.parametrize("name", [f"agent-{SECRET}", "ada@example.org"])
async def test_an_agents_name_that_looks_like_a_secret_is_refused_and_not_repeated(alice: User, name: str) -> None:
    body = {"agent": name, "task": "x", "query": "x", "outcome": "success"}
    for path, fields in (("/v1/retain", ("agent", "task", "outcome")), ("/v1/retrieve", ("agent", "query"))):
        answer = await alice.http.post(path, json={field: body[field] for field in fields})
        assert (answer.status_code, answer.json()["type"]) == (422, "urn:casebank:problem:secret-in-name")
        assert name not in answer.text
    assert (await alice.http.put(f"/v1/profiles/{name}", json={"k": 3})).status_code == 422


async def test_a_secret_as_idempotency_key_still_makes_a_repeat_the_same_case(alice: User) -> None:
    assert await alice.retain("once", key=SECRET) == await alice.retain("once", key=SECRET)
    assert await alice.retain("once", key=SECRET) != await alice.retain("once", key=SECRET + "x")


async def test_a_field_that_nobody_knows_is_named_without_its_secret(alice: User) -> None:
    answer = await alice.http.post("/v1/retain", json={"agent": AGENT, "task": "x", "outcome": "success", SECRET: 1})
    assert answer.status_code == 422
    assert SECRET not in answer.text
    assert "[REDACTED:github-token]" in answer.text
