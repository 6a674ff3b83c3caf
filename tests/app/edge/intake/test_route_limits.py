"""Bodies over the limit are refused while they arrive; what just fits is kept whole."""

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
