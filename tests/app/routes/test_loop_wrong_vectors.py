"""A vector of the wrong length, however it got there, spoils no profile's retrieve and no case of the worker's."""

import asyncpg
import pytest

from app.postgres.pools import dsn
from tests.service import AGENT, User

TASK = "scale the payments service to three replicas"
FAILED_AND_FIXED = [
    {"tool": "kubectl", "input": {"c": "scale"}, "output": "error: no such deployment", "status": "error"},
    {"tool": "kubectl", "input": {"c": "scale deploy/payments"}, "output": "scaled"},
]
SHORT = "array_fill(0.1::real, ARRAY[7])"


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("procedures", f"embedding = {SHORT}"),
        ("case_embeddings", f"embedding = {SHORT}::vector"),
    ],
)
async def test_one_vector_of_the_wrong_length_spoils_no_retrieve_and_no_work(
    alice: User, database_url: str, table: str, column: str
):
    for number in range(3):
        found = await alice.retrieve(TASK)
        run = {"retrieval_id": found["retrieval_id"], "reward": 1.0, "plan": [f"try {number}"]}
        await alice.retain(
            f"{TASK} for {number} tenants", **run, tool_traces=[*FAILED_AND_FIXED, {"tool": f"check_{number}"}]
        )
        await alice.settle()
    owner = await asyncpg.connect(dsn(database_url))
    one = f"SELECT min(ctid) FROM {table} WHERE user_sub = $1"  # noqa: S608 - literals of this test
    spoiled = await owner.execute(f"UPDATE {table} SET {column} WHERE user_sub = $1 AND ctid = ({one})", alice.name)  # noqa: S608
    await owner.close()
    assert spoiled == "UPDATE 1"

    found = await alice.retrieve(TASK)
    assert (found["mode"], found["degraded"]) == ("hybrid", [])
    assert len(found["cases"]) == 3
    searched = await alice.http.post("/v1/procedures/search", json={"agent": AGENT, "trigger": TASK})
    assert searched.status_code == 200, searched.text
    kept = await alice.retain(f"{TASK} and then to four", tool_traces=FAILED_AND_FIXED)
    await alice.settle()
    assert (await alice.case(kept))["status"] == "ready"
