"""Work in processes beside the service: it ends in time, holds up nobody else, and knows nothing of the service."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator

import psutil
import pytest

from app.edge.intake.aside import Aside
from app.edge.intake.body import check_counts
from app.edge.intake.errors import BodyTooComplex, BodyTooCostly, Busy
from app.edge.intake.side_process import MOST_RESIDENT, Broke
from tests.processes import alive

FOR_EVER = "any(False for _ in iter(int, 1))"
"""Python looks for signals on every round of it."""


@pytest.fixture
async def aside() -> AsyncIterator[Aside]:
    aside = Aside(processes=2, budget_s=0.3, given_up_after_s=600, patience_s=600)
    yield aside
    await aside.close()


async def test_what_work_comes_to_is_returned_and_what_it_raises_is_raised(aside: Aside):
    assert await aside.run("alice", sorted, [3, 1, 2]) == [1, 2, 3]
    with pytest.raises(BodyTooComplex):
        await aside.run("alice", check_counts, b"[" * 1_000)


async def test_an_error_that_nobody_expected_tells_its_type_alone(aside: Aside):
    with pytest.raises(Broke) as told:
        await aside.run("alice", int, "hunter2")
    assert str(told.value) == "ValueError"
    assert await aside.run("alice", int, "2") == 2


async def test_work_that_takes_too_much_of_the_processor_is_given_up_and_its_process_kept(aside: Aside):
    pid = await aside.run("alice", os.getpid)
    with pytest.raises(BodyTooCostly):
        await aside.run("alice", eval, FOR_EVER)
    assert await aside.run("alice", os.getpid) == pid


async def test_a_large_service_keeps_its_processes(aside: Aside):
    held = b"x" * (MOST_RESIDENT + 1)
    pid = await aside.run("alice", os.getpid)
    assert await aside.run("alice", os.getpid) == pid
    assert len(held) > MOST_RESIDENT


async def test_a_process_that_keeps_too_much_is_replaced():
    aside = Aside(processes=1, budget_s=600, given_up_after_s=600, patience_s=600)
    pid = await aside.run("alice", os.getpid)
    keep = f"__import__('builtins').__dict__.update(held=b'x' * {MOST_RESIDENT}) or 1"
    assert await aside.run("alice", eval, keep) == 1
    assert await aside.run("alice", os.getpid) != pid
    await aside.close()


async def test_work_that_cannot_be_interrupted_ends_with_its_process():
    aside = Aside(processes=2, budget_s=0.3, given_up_after_s=5, patience_s=600)
    pid = await aside.run("alice", os.getpid)
    with pytest.raises(BodyTooCostly):
        await aside.run("alice", sum, range(10**12))
    assert not alive(pid)
    assert await aside.run("alice", os.getpid) != pid
    await aside.close()


async def test_a_process_that_died_is_replaced(aside: Aside):
    pid = await aside.run("alice", os.getpid)
    os.kill(pid, signal.SIGKILL)
    while alive(pid):  # noqa: ASYNC110 - a process tells nobody
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    assert await aside.run("alice", os.getpid) != pid


async def test_a_process_that_dies_at_its_work_makes_the_work_busy(aside: Aside):
    with pytest.raises(Busy):
        await aside.run("alice", os._exit, 1)
    assert await aside.run("alice", int, "2") == 2


async def test_the_work_of_another_user_is_done_while_one_user_waits_for_their_own():
    aside = Aside(processes=2, budget_s=600, given_up_after_s=600, patience_s=600)
    first = asyncio.create_task(aside.run("alice", eval, FOR_EVER))
    second = asyncio.create_task(aside.run("alice", os.getpid))
    try:
        for _ in range(3):
            assert await aside.run("bob", int, "2") == 2
        assert not first.done()
        assert not second.done()
    finally:
        for task in (first, second):
            task.cancel()
        await asyncio.gather(first, second, return_exceptions=True)
        await aside.close()


async def test_whoever_waits_too_long_for_a_turn_is_told_to_come_again():
    aside = Aside(processes=1, budget_s=600, given_up_after_s=600, patience_s=0.05)
    held = asyncio.create_task(aside.run("alice", eval, FOR_EVER))
    try:
        for _ in range(10):
            await asyncio.sleep(0)  # it takes its turn before it waits for its process
        with pytest.raises(Busy):
            await aside.run("bob", int, "2")
    finally:
        held.cancel()
        await asyncio.gather(held, return_exceptions=True)


async def test_work_that_nobody_waits_for_any_more_is_ended():
    aside = Aside(processes=1, budget_s=600, given_up_after_s=600, patience_s=600)
    pid = await aside.run("alice", os.getpid)
    abandoned = asyncio.create_task(aside.run("alice", eval, FOR_EVER))
    used = psutil.Process(pid).cpu_times().user
    while psutil.Process(pid).cpu_times().user < used + 0.1:  # noqa: ASYNC110 - a process tells nobody
        await asyncio.sleep(0.01)
    abandoned.cancel()
    await asyncio.gather(abandoned, return_exceptions=True)
    assert not alive(pid)


async def test_a_process_has_no_setting_of_the_service(aside: Aside, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CASEBANK_JWT_SECRET", "hunter2")
    monkeypatch.setenv("DATABASE_URL", "postgresql://alice:hunter2@db/casebank")
    assert set(await aside.run("alice", eval, "dict(__import__('os').environ)")) <= {
        *("LD_LIBRARY_PATH", "LC_CTYPE", "OPENBLAS_NUM_THREADS", "PATH", "PYTHONPATH", "TMPDIR")
    }


async def test_closing_ends_the_processes(aside: Aside):
    pid = await aside.run("alice", os.getpid)
    await aside.close()
    assert not alive(pid)
