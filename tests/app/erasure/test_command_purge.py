"""The purge as an operator meets it: what is left on the disk, and what the receipt says of it."""

import asyncio
import hashlib
import itertools
import json
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from typer.testing import CliRunner

from app import postgres
from app.backup.erase_again import read_receipts
from app.cli import cli
from app.erasure import command
from app.erasure.command import sample, search
from app.erasure.scrub import ScrubRefused, scrub
from app.postgres.pools import dsn
from app.runtime import running
from app.settings import Settings
from retrieval.errors import UserErased
from retrieval.ranking.retrieved import Question
from retrieval.search.candidates import CaseSearch
from retrieval.tables.audit import erasures
from retrieval.tables.metadata import USER_TABLES
from tests.processes import casebank, migrated_home, started, surroundings
from writer.author import Author
from writer.privacy.keys import Keyring
from writer.privacy.master_keys import MasterKeyMismatch
from writer.retain.retain import retain
from writer.rewards.feedback import Feedback, give_feedback
from writer.rights.erase import erase
from writer.rights.signature import SignatureBroken, Signer, documents, verified
from writer.run import FinishedRun

MARK, AGENT = "Xylophonia Quendelbaum", "Zwiebelmus-Agent"
BOB = "bob-the-bystander"
KEPT = "re-string the harp of the north tower"
WORDS = ("Quendelbaum", "quendelbaum", "Zwiebelmus", "zwiebelmus")
"""Pieces of every text of the marked user."""


def marked(number: int) -> FinishedRun:
    """A run with the mark in every field that a backend can fill."""
    text = f"Zwiebelmus number {number}"
    lesson = {
        "procedure_name": text,
        "semantic_description": f"how to cook {text}",
        "initial_failure_summary": f"{text} burnt",
        "identified_root_cause": f"{text} was too hot",
        "successful_intervention": f"cooled {text}",
        "learned_procedure_steps": [f"cool {text}"],
        "example_scenario_abstract": f"cooking {text}",
    }
    traces = [
        {"tool": "zwiebelmus_stove", "input": {"what": text}, "output": f"Error: {text} burns", "status": "error"},
        {"tool": "zwiebelmus_stove", "input": {"what": text, "heat": 1}, "output": f"{text} done", "status": "ok"},
    ]
    return FinishedRun.model_validate(
        {
            "agent": AGENT,
            "task": f"cook {text} for Quendelbaum",
            "plan": [f"heat {text}"],
            "outcome": "success",
            "tags": [f"Zwiebelmus-{number}"],
            "turns": [{"role": "user", "content": f"please {text}"}],
            "prompt_snapshot": f"you are a cook of {text}",
            "tool_traces": traces,
            "procedure": {"data": lesson} if number % 2 else None,
        }
    )


async def settle(runtime: Any) -> None:
    while await runtime.worker.run_once():
        pass


async def live(settings: Settings, runs: int) -> None:
    """The marked user acts for herself and for Bob, by every route; Bob has a run of his own."""
    now = datetime.now(UTC)
    async with running(settings) as runtime:
        database, keyring = runtime.database, runtime.keyring
        for number in range(runs):
            await retain(database, keyring, marked(number), Author(MARK, MARK, now), f"Zwiebelmus-key-{number}")
        kept = await retain(
            database, keyring, FinishedRun(agent="harper", task=KEPT, outcome="success"), Author(BOB, MARK, now)
        )
        await settle(runtime)
        for number in range(runs):
            asked = Question(CaseSearch(AGENT, f"how is Zwiebelmus {number} cooked for Quendelbaum"))
            seen = await runtime.reader.retrieve(MARK, now, asked)
            async with database.as_user(MARK, now) as connection:
                given = Feedback(1.0, "user", decision_id=seen.retrieval_id)
                await give_feedback(connection, MARK, MARK, given)
        async with database.as_user(BOB, now) as connection:
            await give_feedback(connection, BOB, MARK, Feedback(1.0, "user", case_id=kept.case_id))


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    with migrated_home() as home:
        monkeypatch.setenv("CASEBANK_HOME", str(home))
        monkeypatch.delenv("DATABASE_URL", raising=False)
        yield Settings()
        postgres.release(home)


def states(receipt: dict[str, Any]) -> dict[str, str]:
    return {place["place"]: place["state"] for place in receipt["places"]}


def on_disk(home: Path) -> dict[str, dict[str, int]]:
    return search(home / "postgres", [MARK, *WORDS])


async def living(settings: Settings) -> list[str]:
    """The tables in a row of which a mark stands, and the statistics that know one."""
    server = postgres.start(settings.home)
    owner = await asyncpg.connect(dsn(server.url()))
    try:
        pattern = "|".join((MARK, *WORDS))
        tables = (*(table.name for table in USER_TABLES), erasures.name, "jobs", "pg_stats")
        counts = {
            name: await owner.fetchval(f"SELECT count(*) FROM {name} t WHERE t::text ~ $1", pattern)  # noqa: S608
            for name in tables
        }
        return [name for name, count in counts.items() if count]
    finally:
        await owner.close()


async def found_by_bob(settings: Settings) -> list[str]:
    async with running(settings) as runtime:
        asked = Question(CaseSearch("harper", "how is the harp strung"))
        seen = await runtime.reader.retrieve(BOB, datetime.now(UTC), asked)
    return [choice.row.task for choice in seen.choices]


async def test_after_a_purge_with_a_scrub_no_mark_of_the_user_is_left_anywhere(settings: Settings):
    await live(settings, runs=4)
    assert on_disk(settings.home)  # or else this proves nothing
    receipt, _ = await command.purge(settings, MARK, scrubs=True, progress=lambda _step: None)
    assert await living(settings) == []
    assert on_disk(settings.home) == {}
    assert receipt is not None
    assert verified(receipt)
    assert receipt["clean"]
    assert (states(receipt)["dead rows"], states(receipt)["write-ahead log"]) == ("gone", "gone")
    assert receipt["search"]["found"] == {}
    assert receipt["search"]["looked_for"]["texts"] > 0
    assert receipt["renamed"] == {
        "audit.actor": 2,
        "rewards.actor": 1,
        "procedure_reviews.actor": 0,
        "cases.source": 1,
    }
    assert MARK not in json.dumps(receipt)
    assert await found_by_bob(settings) == [KEPT]
    postgres.release(settings.home)
    assert on_disk(settings.home) == {}  # the stopped server has written everything


async def test_without_a_scrub_the_receipt_says_what_is_on_the_disk_and_a_later_scrub_completes_it(settings: Settings):
    await live(settings, runs=3)
    receipt, _ = await command.purge(settings, MARK, scrubs=False, progress=lambda _step: None)
    assert receipt is not None
    assert (states(receipt)["dead rows"], states(receipt)["write-ahead log"]) == ("remains", "remains")
    assert await living(settings) == []
    assert on_disk(settings.home)
    steps: list[str] = []
    _, completed = await command.purge(settings, None, scrubs=True, progress=steps.append)
    assert completed == 1
    assert "rewriting cases" in steps
    assert on_disk(settings.home) == {}
    (receipt,) = await command.receipts(settings, hashlib.sha256(MARK.encode()).hexdigest())
    assert (states(receipt)["dead rows"], states(receipt)["write-ahead log"]) == ("gone", "gone")
    assert await found_by_bob(settings) == [KEPT]


async def test_a_scrub_with_another_installations_master_key_leaves_the_receipts_to_who_signed_them(settings: Settings):
    await command.purge(settings, MARK, scrubs=False, progress=lambda _step: None)
    signed = await command.receipts(settings, hashlib.sha256(MARK.encode()).hexdigest())
    another = Settings(home=settings.home, master_key="6" * 64)
    with pytest.raises(MasterKeyMismatch):
        await command.purge(another, None, scrubs=True, progress=lambda _step: None)
    assert await command.receipts(settings, hashlib.sha256(MARK.encode()).hexdigest()) == signed


async def test_a_scrub_names_the_receipts_that_this_installation_did_not_sign_and_completes_those_of_its_earlier_key(
    settings: Settings,
):
    await command.purge(settings, MARK, scrubs=False, progress=lambda _step: None)
    steps: list[str] = []
    new, old = "6" * 64, settings.master_key_bytes.hex()
    rotated = Settings(home=settings.home, master_key=new, master_key_old=old)
    assert (await command.purge(rotated, None, scrubs=True, progress=steps.append))[1] == 1
    assert (await command.purge(settings, None, scrubs=True, progress=steps.append))[1] == 0
    user_digest = hashlib.sha256(MARK.encode()).hexdigest()
    assert [user_digest in step for step in steps].count(True) == 1
    (receipt,) = await command.receipts(settings, user_digest)
    assert verified(receipt) == Signer.of(bytes.fromhex(new)).public_key


async def test_a_scrub_that_is_killed_can_be_repeated(settings: Settings):
    await live(settings, runs=3)
    await command.purge(settings, MARK, scrubs=False, progress=lambda _step: None)
    postgres.start(settings.home)
    for step in ("rewriting cases", "rewriting profiles"):
        reading, writing = os.pipe()
        with open(writing, "wb") as told:  # noqa: ASYNC230, PTH123 - a pipe
            broken = started(("purge", "--scrub"), surroundings(settings.home), told, told)
        with open(reading, "rb") as steps:  # noqa: ASYNC230, PTH123
            assert any(step.encode() in line for line in steps)
            broken.kill()
        broken.wait()
    assert (await command.purge(settings, None, scrubs=True, progress=lambda _step: None))[1] == 1
    assert on_disk(settings.home) == {}
    assert await found_by_bob(settings) == [KEPT]


async def test_a_transaction_that_still_sees_what_was_deleted_is_named_and_waited_for(settings: Settings):
    async with running(settings) as runtime:
        url = postgres.start(settings.home).url()
        now = datetime.now(UTC)
        await retain(runtime.database, runtime.keyring, marked(0), Author(MARK, MARK, now))
        old = await asyncpg.connect(dsn(url), server_settings={"application_name": "a long report"})
        async with old.transaction(isolation="repeatable_read"):
            await old.fetch("SELECT 1 FROM cases")
            await erase(runtime.database, MARK)
            with pytest.raises(ScrubRefused, match="a long report"):
                await scrub(url, lambda _step: None, patience_s=0.5)
        await old.close()
        assert (await scrub(url, lambda _step: None)).log_from
        assert on_disk(settings.home) == {}


async def test_a_writer_in_another_database_is_named_and_waited_for_because_snapshots_reach_back_to_it(
    settings: Settings,
):
    async with running(settings) as runtime:
        server = postgres.start(settings.home)
        await retain(runtime.database, runtime.keyring, marked(0), Author(MARK, MARK, datetime.now(UTC)))
        elsewhere = await asyncpg.connect(
            dsn(server.url("postgres")), server_settings={"application_name": "another program"}
        )
        async with elsewhere.transaction():
            await elsewhere.execute("SELECT pg_current_xact_id()")
            await erase(runtime.database, MARK)
            with pytest.raises(ScrubRefused, match="another program"):
                await scrub(server.url(), lambda _step: None, patience_s=0.5)
        await elsewhere.close()
        assert (await scrub(server.url(), lambda _step: None)).log_from
        assert on_disk(settings.home) == {}


async def test_segments_that_the_server_recycles_are_reported_until_they_are_written_over(settings: Settings):
    async with running(settings) as runtime:
        server = postgres.start(settings.home)
        await retain(runtime.database, runtime.keyring, marked(0), Author(MARK, MARK, datetime.now(UTC)))
        await erase(runtime.database, MARK)

        def stop_server(step: str) -> None:
            """Stops the process that passes changed settings on, so that checkpoints recycle whatever is set."""
            if step == "dropping the log":
                os.kill(server.pid, signal.SIGSTOP)

        try:
            impatient = await scrub(server.url(), stop_server, patience_s=0)
            assert (impatient.log_from, "recycled" in impatient.log_kept_by) == (None, True)
            assert on_disk(settings.home)
            os.kill(server.pid, signal.SIGCONT)
            patient = await scrub(server.url(), stop_server)
            assert (bool(patient.log_from), on_disk(settings.home)) == (True, {})
        finally:
            os.kill(server.pid, signal.SIGCONT)


async def test_a_log_that_a_replication_slot_keeps_is_reported_and_searched(settings: Settings):
    await live(settings, runs=1)
    server = postgres.start(settings.home)
    owner = await asyncpg.connect(dsn(server.url()))
    await owner.execute("SELECT pg_create_physical_replication_slot('standby', true)")
    await owner.close()
    receipt, _ = await command.purge(settings, MARK, scrubs=True, progress=lambda _step: None)
    assert receipt is not None
    assert states(receipt)["write-ahead log"] == "remains"
    assert receipt["search"]["found"]
    assert all("/pg_wal/" in file for file in receipt["search"]["found"])


async def test_a_login_that_does_not_own_the_tables_is_told_so(settings: Settings):
    async with running(settings):
        server = postgres.start(settings.home)
        owner = await asyncpg.connect(dsn(server.url()))
        await owner.execute("CREATE ROLE stranger LOGIN")
        await owner.close()
        with pytest.raises(ScrubRefused, match="does not own"):
            await scrub(server.url(role="stranger"), lambda _step: None)


async def test_a_scrub_reads_the_url_as_the_service_does(settings: Settings):
    with postgres.running(settings.home) as server:
        done = await scrub(f"{server.url()}&channel_binding=prefer&connect_timeout=10", lambda _: None)
    assert done.tables


async def test_a_cluster_is_not_scrubbed_for_other_nodes_files_are_out_of_reach():
    with pytest.raises(ScrubRefused, match="Citus cluster"):
        await scrub("postgresql://owner@coordinator/bank?citus=true", lambda _step: None)


async def test_a_mark_that_others_rows_hold_proves_nothing_and_is_said_to_be_shared(settings: Settings):
    await live(settings, runs=1)
    done = await command.scrub_bank(settings, MARK, [KEPT], lambda _step: None)
    assert done == 0
    await command.purge(settings, BOB[:6], scrubs=True, progress=lambda _step: None)
    (receipt,) = await command.receipts(settings, hashlib.sha256(BOB[:6].encode()).hexdigest())
    assert (receipt["search"]["shared"], receipt["search"]["found"]) == (1, {})


async def test_what_does_not_decrypt_hides_no_other_text_from_the_search(settings: Settings):
    async with running(settings) as runtime:
        database, tasks = runtime.database, [marked(number).task for number in range(3)]
        for number, sealed in enumerate((True, True, False)):
            keyring = replace(runtime.keyring, seals_words=sealed)
            await retain(database, keyring, marked(number), Author(MARK, MARK, datetime.now(UTC)))
        owner = await asyncpg.connect(dsn(postgres.start(settings.home).url()))
        await owner.execute("UPDATE cases SET words = 'cut' WHERE id = (SELECT id FROM cases ORDER BY id LIMIT 1)")
        assert set(await sample(database, runtime.keyring, MARK)) == set(tasks[1:])
        await owner.execute("UPDATE user_keys SET master_key = 'of another installation'")
        assert await sample(database, Keyring(runtime.keyring.master), MARK) == tasks[2:]
        await owner.close()


async def test_a_name_that_stands_by_chance_among_sealed_bytes_is_not_searched_for(settings: Settings):
    receipt, _ = await command.purge(settings, "x7q", scrubs=True, progress=lambda _step: None)
    assert receipt is not None
    assert receipt["search"]["looked_for"] == {"name": 0, "texts": 0}
    assert states(receipt)["dead rows"] == "gone"


async def test_a_name_that_is_a_word_of_postgres_proves_nothing(settings: Settings):
    receipt, _ = await command.purge(settings, "operator", scrubs=True, progress=lambda _step: None)
    assert receipt is not None
    assert (receipt["search"]["shared"], receipt["search"]["found"]) == (1, {})
    assert states(receipt)["dead rows"] == "gone"


async def test_a_purge_while_a_worker_a_retain_and_a_retrieve_of_the_user_are_under_way_leaves_nothing(
    settings: Settings,
):
    async def go_on(runtime: Any, since: datetime) -> None:
        with suppress(UserErased):
            for number in itertools.count(100):
                await retain(runtime.database, runtime.keyring, marked(number), Author(MARK, MARK, since))
                asked = Question(CaseSearch(AGENT, f"how is Zwiebelmus {number} cooked for Quendelbaum"))
                await runtime.reader.retrieve(MARK, since, asked)

    async with running(settings) as runtime:
        now = datetime.now(UTC)
        for number in range(20):
            await retain(runtime.database, runtime.keyring, marked(number), Author(MARK, MARK, now))
        working = asyncio.gather(settle(runtime), go_on(runtime, now))
        words = ("purge", "--user", MARK, "--yes", "--scrub", "--json")
        purged = await asyncio.to_thread(casebank, settings.home, *words)
        await working
        receipt = documents(purged.stdout)[0]
        assert receipt["search"]["found"] == {}
        assert (states(receipt)["dead rows"], states(receipt)["write-ahead log"]) == ("gone", "gone")
        assert await living(settings) == []
    postgres.release(settings.home)
    assert on_disk(settings.home) == {}


def test_receipts_are_printed_again_and_checked_by_anybody(settings: Settings, tmp_path: Path):
    def purge(*words: str) -> Any:
        return CliRunner().invoke(cli, ["purge", *words])

    printed = purge("--user", MARK, "--yes", "--json").stdout
    assert documents(purge("--receipt", "--user", MARK, "--json").stdout) == documents(printed)
    digest = hashlib.sha256(MARK.encode()).hexdigest()
    assert documents(purge("--receipt", "--digest", digest, "--json").stdout) == documents(printed)
    shown = purge("--receipt", "--user", MARK).stdout
    assert digest in shown
    assert documents(printed)[0]["signature"]["public_key"] in shown
    assert all(name in shown for name in ("dead rows", "write-ahead log", "backups", "cases"))
    assert purge("--receipt", "--user", "nobody").exit_code == 1
    file = tmp_path / "receipt.json"
    file.write_text(printed)
    checked = purge("--verify", str(file))
    assert (checked.exit_code, "signed by this installation" in checked.stdout) == (0, True)
    file.write_text(printed.replace('"clean": true', '"clean": false'))
    checked = purge("--verify", str(file))
    assert (checked.exit_code, "changed" in checked.stderr) == (1, True)
    with pytest.raises(SignatureBroken):
        verified(documents(file.read_text())[0])
    assert purge("--yes").exit_code == 2
    again = purge("--user", MARK, "--yes", "--json").stdout
    file.write_text(purge("--receipt", "--user", MARK, "--json").stdout)
    assert documents(file.read_text()) == documents(printed) + documents(again)
    assert purge("--verify", str(file)).stdout.count("signed by this installation") == 2
    assert [(digest, at.isoformat()) for digest, at in read_receipts([file])] == [
        (each["user_sha256"], each["erased_at"]) for each in documents(file.read_text())
    ]


async def test_a_purge_that_finds_no_row_asks_whether_the_name_is_right_and_blocks_old_tokens_all_the_same(
    settings: Settings,
):
    async def purged(*words: str, given: str = "") -> Any:
        return await asyncio.to_thread(CliRunner().invoke, cli, ["purge", "--json", *words], given)

    doubt = "this user has no rows: is the name right?"
    await live(settings, runs=1)
    misspelt = await purged("--user", f"{MARK}2", "--yes")
    assert (misspelt.exit_code, doubt in misspelt.stderr) == (0, True)
    assert sum(documents(misspelt.stdout)[0]["rows"].values()) == 0
    assert await command.receipts(settings, hashlib.sha256(f"{MARK}2".encode()).hexdigest())
    for name, doubted in ((f"{MARK}3", True), (MARK, False)):
        declined = await purged("--user", name, given="n\n")
        assert (declined.exit_code, doubt in declined.stderr) == (1, doubted)
        assert not await command.receipts(settings, hashlib.sha256(name.encode()).hexdigest())
    assert doubt not in (await purged("--user", MARK, "--yes")).stderr


def test_a_purge_without_a_user_asks_for_one():
    done = CliRunner().invoke(cli, ("purge",), terminal_width=200)
    assert done.exit_code == 2
    assert "--user: name a user" in done.output
