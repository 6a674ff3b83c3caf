"""Bodies over the limit are refused while they arrive; what just fits is kept whole."""

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.app.bad_input import CANARY, is_problem, queue_moves, raw, run, send
from tests.service import User

KNOWN_MB = 10


@pytest.mark.parametrize("field", ["task", "prompt_snapshot", "agent"])
async def test_ten_megabytes_are_refused_whole(field: str, alice: User):
    answer = await send(alice, "/v1/retain", raw(run(**{field: CANARY * ((KNOWN_MB << 20) // len(CANARY))})))
    assert answer.status_code == 413
    assert is_problem(answer)["max_bytes"] == 4 << 20
    assert await alice.cases(status="any") == []
    await queue_moves(alice)


async def test_ten_megabytes_without_a_length_are_refused_too(alice: User):
    async def pieces() -> Any:
        for _ in range(KNOWN_MB):
            yield b" " * (1 << 20)

    answer = await send(alice, "/v1/retain", pieces())
    assert answer.status_code == 413
    is_problem(answer)


async def test_what_just_fits_is_kept_whole(alice: User):
    output = "0123456789abcde\n" * (3 << 16)
    case_id = await alice.retain("water the garden", tool_traces=[{"tool": "hose", "output": output}])
    await alice.settle()
    assert (await alice.case(case_id))["tool_traces"][0]["output"] == output


async def test_a_small_body_without_a_length_waits_for_no_room(alice: User):
    async def pieces() -> Any:
        yield b'{"agent": "a", '
        yield b'"query": "water"}'

    intake = alice.service.app.state.intake
    async with AsyncExitStack() as others:
        for user in ("u", "v"):
            for _ in range(2):
                await others.enter_async_context(intake.room.held(user, intake.max_bytes))
        async with asyncio.timeout(alice.service.settings.timeouts_s.body / 6):
            answer = await send(alice, "/v1/retrieve", pieces())
    assert answer.status_code == 200


@pytest.mark.parametrize("size", [(20_000, 1), (17_000, 2), (1, 40_000), (4_000_000, 1)])
async def test_a_large_body_without_a_length_is_read_whole(size: tuple[int, int], alice: User):
    async def pieces() -> Any:
        yield b'{"agent": "a", "query": "water"'
        for _ in range(size[1]):
            yield b" " * size[0]
        yield b"}"

    assert (await send(alice, "/v1/retrieve", pieces())).status_code == 200
