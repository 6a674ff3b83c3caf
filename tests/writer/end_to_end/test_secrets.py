"""Secrets: what was redacted or sealed is nowhere to be read, from retain to the embedder and the log."""

import json
from datetime import UTC, datetime

import asyncpg
import pytest

from tests.fakes.openai_server import OpenAIServer
from tests.writer.conftest import Bank, MakeWorker, drain, keep, states
from writer.rights.edit import set_tags

MARK = "xylophone-in-the-attic"
SECRETS = [
    "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2,
    "AKIA" + "J7QZ4M2XK9P3W8RV",
    "ada.lovelace@analytical.example",
    "4111 1111 1111 1111",
    "hunter2-but-longer",
]
LEAK = f"key {SECRETS[0]} and {SECRETS[1]}, mail {SECRETS[2]}, card {SECRETS[3]}, password={SECRETS[4]} end"


async def dump(owner: asyncpg.Connection) -> str:
    """Everything that the database holds, as text; bytes as hexadecimal digits."""
    tables = await owner.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    rows = [await owner.fetch(f"SELECT t::text AS row FROM {table['tablename']} t") for table in tables]  # noqa: S608
    return "\n".join(row["row"] for table in rows for row in table)


async def test_sealed_columns_hold_no_plaintext(
    bank: Bank, server: OpenAIServer, worker_on: MakeWorker, owner: asyncpg.Connection, user: str
):
    # the names of arguments are told on purpose, by tool memory and by lessons; what is inside them is not
    traces = [{"tool": "hose", "input": {"into": {MARK: MARK}}, "output": MARK}]
    case_id = await keep(
        bank,
        user,
        plan=["water it"],  # or else it is read off the calls
        tool_traces=traces,
        prompt_snapshot={"system": MARK},
        turns=[{"role": "user", "content": MARK}],
    )
    await drain(worker_on(server))
    payload = await owner.fetchval("SELECT payload FROM cases WHERE id = $1", case_id)
    assert payload
    everything = await dump(owner)
    assert str(case_id) in everything
    assert MARK not in everything
    assert MARK.encode().hex() not in everything
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        words = await bank.keyring.find(connection, user)
    assert words is not None
    opened = words.open("payload", payload, case_id)
    assert opened["prompt_snapshot"] == {"system": MARK}
    assert words.key.hex() not in everything


async def test_no_secret_reaches_the_database_the_embedder_or_the_log(  # noqa: PLR0913, PLR0917 - fixtures
    bank: Bank,
    server: OpenAIServer,
    worker_on: MakeWorker,
    owner: asyncpg.Connection,
    user: str,
    capfd: pytest.CaptureFixture[str],
):
    told = ["procedure_name", "semantic_description", "initial_failure_summary", "identified_root_cause"]
    lesson = dict.fromkeys((*told, "successful_intervention", "example_scenario_abstract"), LEAK)
    case_id = await keep(
        bank,
        user,
        LEAK,
        plan=[LEAK],
        tags=[SECRETS[0], SECRETS[2]],
        tool_traces=[{"tool": f"curl {SECRETS[0]}", "input": {"a": [LEAK]}, "output": {LEAK: LEAK}}],
        turns=[{"role": SECRETS[2], "content": LEAK}],
        prompt_snapshot={"system": LEAK},
        procedure={"data": {**lesson, "procedure_name": SECRETS[0], "learned_procedure_steps": [LEAK]}},
    )
    worker = worker_on(server)
    await drain(worker)
    async with bank.database.as_user(user, datetime.now(UTC)) as connection:
        words = await bank.keyring.find(connection, user)
        await set_tags(connection, bank.keyring, bank.author(user), case_id, ["seen"])
    (row,) = await states(bank, user)
    assert row.status == "ready"
    assert words is not None
    opened = json.dumps(words.open("payload", row.payload, case_id))
    sent = str([request.payload for request in server.requests])
    assert "end" in opened  # what stood around the secrets is there
    assert "end" in sent
    places = {
        "database": await dump(owner),
        "payload": opened,
        "embedder": sent,
        "log": str(capfd.readouterr()),
    }
    for place, text in places.items():
        for secret in SECRETS:
            assert secret not in text, place
            assert secret.encode().hex() not in text, place
