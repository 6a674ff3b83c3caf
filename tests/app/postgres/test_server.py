"""A server is started, reached, stopped and started again, and keeps what it acknowledged."""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

import asyncpg
import pytest
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from app.postgres import EmbeddedPostgresFailed, release, running, start
from tests.app.postgres.conftest import alive, another_user, kill, server_pid, sql


async def test_data_survives_a_stop_that_leaves_no_process(home: Path):
    first = start(home)
    await sql(first, "CREATE TABLE kept AS SELECT 7 AS n")
    release(home)
    assert not alive(first.pid)
    assert not (home / "postgres" / "postmaster.pid").exists()
    with running(home) as second:
        assert second.pid != first.pid
        assert await sql(second, "SELECT n FROM kept") == 7


async def test_a_second_start_changes_nothing_and_one_release_undoes_both(home: Path):
    assert start(home) == start(home)
    server = start(home / ".." / home.name)
    assert await sql(server, "SELECT count(*) FROM pg_database WHERE datname = 'casebank'") == 1
    release(home)
    assert not alive(server.pid)
    release(home)


async def test_the_databases_of_a_killed_restore_are_dropped_by_the_next_start(home: Path):
    server = start(home)
    for name in ("casebank_restored", "casebank_replaced"):
        await sql(server, f"CREATE DATABASE {name}")
    release(home)
    assert await sql(start(home), "SELECT count(*) FROM pg_database WHERE datname LIKE 'casebank\\_%'") == 0
    release(home)


async def test_sqlalchemy_reaches_every_database_by_url(home: Path):
    server = start(home)
    await sql(server, 'CREATE DATABASE "a b/c"')
    await sql(server, 'CREATE ROLE "plain role" LOGIN')
    engine = create_async_engine(server.url("a b/c", role="plain role"))
    async with engine.connect() as connection:
        row = (await connection.execute(text("SELECT current_database(), current_user"))).one()
    await engine.dispose()
    assert tuple(row) == ("a b/c", "plain role")


async def test_nothing_acknowledged_is_lost_and_no_users_words_are_logged(home: Path):
    server = start(home)
    for setting, value in {"fsync": "on", "synchronous_commit": "on", "jit": "off", "listen_addresses": ""}.items():
        assert await sql(server, f"SHOW {setting}") == value
    with pytest.raises(asyncpg.DataError):
        await sql(server, "SELECT 'my-secret'::integer")
    assert "my-secret" not in (home / "postgres.log").read_text()


async def test_words_outside_ascii_are_found_in_either_case_and_order_by_code_point(home: Path):
    server = start(home)
    assert await sql(server, "SELECT to_tsvector('simple', '„ÄPFEL“…Saft') @@ to_tsquery('simple', 'äpfel & saft')")
    assert await sql(server, "SELECT 'B' < 'a' AND 'z' < 'ä'")


async def test_committed_data_survives_kill_9_of_the_server_and_of_its_user(home: Path):
    other = another_user(home)
    server_pid(other)
    server = start(home)
    await sql(server, "CREATE TABLE kept AS SELECT generate_series(1, 1000) AS n")
    kill(other)
    os.kill(server.pid, signal.SIGKILL)
    again = start(home)
    assert again.pid != server.pid
    assert await sql(again, "SELECT sum(n) FROM kept") == 500500


async def test_kill_9_of_the_server_amid_a_query_is_recovered_from_at_once(home: Path):
    server = start(home)
    busy = asyncio.create_task(
        sql(server, "SELECT count(*) FROM generate_series(1, 3000000) a, generate_series(1, 2) b")
    )
    await asyncio.sleep(0.2)
    os.kill(server.pid, signal.SIGKILL)
    again = await asyncio.to_thread(start, home)
    assert await sql(again, "SELECT 1") == 1
    with suppress(asyncpg.PostgresError, OSError):
        await busy


@pytest.mark.parametrize("name", ["with space", "deep/" * 30, "odd ,:;\"'$HOME `%ü&?#*"])
async def test_any_home_will_do_and_nobody_else_can_reach_the_socket(new_home: Path, name: str):
    with running(new_home / name) as server:
        assert server.socket_dir.stat().st_mode & 0o077 == 0
        assert (new_home / name / "postgres").stat().st_mode & 0o077 == 0
        engine = create_async_engine(server.url())
        async with engine.connect() as connection:
            assert (await connection.execute(text("SELECT 1"))).scalar() == 1
        await engine.dispose()
    assert not alive(server.pid)
    assert server.socket_dir == new_home / name / "postgres" or not server.socket_dir.exists()


def test_an_initdb_that_was_killed_leaves_nothing_in_the_way(new_home: Path):
    draft = new_home / "postgres.new"
    draft.mkdir(parents=True)
    (draft / "PG_VERSION").write_text("18\n")
    start(new_home)
    assert not draft.exists()


def test_data_of_another_major_version_is_refused_untouched(new_home: Path):
    (new_home / "postgres").mkdir(parents=True)
    (new_home / "postgres" / "PG_VERSION").write_text("16\n")
    with pytest.raises(EmbeddedPostgresFailed, match="PostgreSQL 16"):
        start(new_home)
    assert [file.name for file in (new_home / "postgres").iterdir()] == ["PG_VERSION"]
