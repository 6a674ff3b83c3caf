"""What never ends by itself ends when it is told to, wherever the signal finds it."""

import asyncio
import os
import signal
import socket

import asyncpg
import pytest
import typer

from app.postgres.pools import one_connection
from app.terminal.run_to_end import run_to_end, until_told_to_stop

PATIENCE_S = 20.0


class SignalledInTheCollector:
    """Python forgets an exception that a signal's handler raises in here."""

    def __init__(self, number: signal.Signals) -> None:
        self.number = number

    def __del__(self) -> None:
        os.kill(os.getpid(), self.number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_signal_amid_a_callback_ends_the_work_after_its_clean_up(number: signal.Signals):
    cleaned_up = []

    async def work() -> None:
        SignalledInTheCollector(number)
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            cleaned_up.append(True)

    async with asyncio.timeout(PATIENCE_S):
        await until_told_to_stop(work())
    assert cleaned_up


async def test_an_error_of_the_work_is_raised():
    async def work() -> None:
        raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        await until_told_to_stop(work())


async def test_who_cancels_it_cancels_the_work():
    cancelled = asyncio.ensure_future(until_told_to_stop(asyncio.sleep(3600)))
    await asyncio.sleep(0)
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled


def test_a_database_that_takes_connections_and_never_answers_is_one_line_that_says_so(
    capsys: pytest.CaptureFixture[str],
):
    async def work() -> None:
        await asyncpg.connect(f"postgresql://nobody@127.0.0.1:{silent.getsockname()[1]}/none", timeout=0.1)

    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(typer.Exit) as ended:
        run_to_end(work())
    assert ended.value.exit_code == 1
    assert capsys.readouterr().err == "casebank: the database does not answer\n"


@pytest.mark.parametrize("state", ["disk_full", "too_many_connections"])
def test_a_refusal_of_the_database_outside_the_pools_is_one_line(
    state: str, database_url: str, capsys: pytest.CaptureFixture[str]
):
    async def work() -> None:
        async with one_connection(database_url) as connection:
            await connection.execute(f"DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '{state}'; END $$")

    with pytest.raises(typer.Exit):
        run_to_end(work())
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("casebank: the d")
