"""After a purge: who is refused, what the answer says, and how a service begins again."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import asyncpg
import httpx
import jwt
import pytest

from app.auth.tokens import ACT_AS, LEEWAY_S
from app.postgres.pools import dsn
from tests.service import Service, User
from writer.rights.erase import erase

RUN = {"agent": "a", "task": "water the plants", "outcome": "success"}


@pytest.fixture
def user() -> str:
    return f"user-{uuid4()}"


async def backend(service: Service, user: str, name: str = "backend") -> httpx.AsyncClient:
    client = await service.http(service.token(name, scope=ACT_AS))
    client.headers["X-Casebank-User"] = user
    return client


async def test_a_410_says_since_when_why_and_what_to_do(service: Service, user: str):
    client = await backend(service, user)
    assert (await client.post("/v1/retain", json=RUN)).status_code == 202
    receipt = await erase(service.runtime.database, user)
    answer = await client.post("/v1/retain", json=RUN)
    said = answer.json()
    assert answer.status_code == 410
    assert datetime.fromisoformat(said["erased_at"]) == receipt.erased_at
    assert datetime.fromisoformat(said["tokens_issued_after"]) == receipt.erased_at + timedelta(seconds=LEEWAY_S)
    assert said["begin_again"] == "POST /v1/users/begin-again"
    assert "use a token issued after `tokens_issued_after`" in said["detail"]
    assert (await client.get("/v1/cases")).json()["erased_at"] == said["erased_at"]


async def test_a_service_begins_again_by_saying_which_erasure_it_knows_of(service: Service, user: str):
    client, other = await backend(service, user), await backend(service, user, "another")
    await client.post("/v1/retain", json=RUN)
    receipt = await erase(service.runtime.database, user)
    wrong = {"erased_at": (receipt.erased_at - timedelta(microseconds=1)).isoformat()}
    refused = await client.post("/v1/users/begin-again", json=wrong)
    assert (refused.status_code, refused.json()["type"]) == (409, "urn:casebank:problem:erasure-not-confirmed")
    assert (await client.get("/v1/cases")).status_code == 410
    begun = await client.post("/v1/users/begin-again", json={"erased_at": receipt.erased_at.isoformat()})
    assert begun.status_code == 200
    assert (await client.post("/v1/retain", json=RUN)).status_code == 202
    await User(user, service, client).settle()
    actions = [entry["action"] for entry in (await client.get("/v1/audit")).json()["entries"]]
    assert actions == ["insert_case", "begin_again"]
    assert (await other.get("/v1/cases")).status_code == 410


async def test_the_next_purge_ends_what_was_begun_again(service: Service, user: str):
    client = await backend(service, user)
    receipt = await erase(service.runtime.database, user)
    assert (
        await client.post("/v1/users/begin-again", json={"erased_at": receipt.erased_at.isoformat()})
    ).status_code == 200
    await erase(service.runtime.database, user)
    assert (await client.get("/v1/cases")).status_code == 410
    again = await client.post("/v1/users/begin-again", json={"erased_at": receipt.erased_at.isoformat()})
    assert again.status_code == 409


async def test_a_users_own_token_from_before_cannot_begin_again(service: Service, user: str):
    client = await service.http(service.token(user))
    receipt = await erase(service.runtime.database, user)
    answer = await client.post("/v1/users/begin-again", json={"erased_at": receipt.erased_at.isoformat()})
    assert answer.status_code == 410
    assert (await client.get("/v1/cases")).status_code == 410


async def test_who_was_never_erased_has_nothing_to_begin_again(service: Service, user: str):
    client = await backend(service, user)
    answer = await client.post("/v1/users/begin-again", json={"erased_at": datetime.now(UTC).isoformat()})
    assert answer.status_code == 404


@pytest.mark.parametrize("ahead_s", [1, 25, 29])
async def test_a_token_dated_ahead_does_not_outlive_a_purge(
    service: Service, database_url: str, user: str, ahead_s: int
):
    """It is issued now, dated ahead; the purge comes 10 s later, and it is used 60 s after that."""
    client = await service.http(service.token(user, age=timedelta(seconds=-ahead_s)))
    assert (await client.post("/v1/retain", json=RUN)).status_code == 202
    receipt = await erase(service.runtime.database, user)
    assert (await client.post("/v1/retain", json=RUN)).status_code == 410
    # as if all of it had been 70 s ago, but for the 10 s between the token and the purge
    back = timedelta(seconds=70)
    owner = await asyncpg.connect(dsn(database_url))
    await owner.execute(
        "UPDATE erasures SET erased_at = $1::timestamptz - interval '60 seconds' WHERE erased_at = $1",
        receipt.erased_at,
    )
    await owner.close()
    old = await service.http(service.token(user, age=back - timedelta(seconds=ahead_s)))
    assert (await old.post("/v1/retain", json=RUN)).status_code == 410


async def test_a_token_from_well_after_the_purge_begins_anew(service: Service, database_url: str, user: str):
    receipt = await erase(service.runtime.database, user)
    owner = await asyncpg.connect(dsn(database_url))
    await owner.execute(
        "UPDATE erasures SET erased_at = $1::timestamptz - interval '60 seconds' WHERE erased_at = $1",
        receipt.erased_at,
    )
    await owner.close()
    fresh = await service.http(service.token(user))
    assert (await fresh.post("/v1/retain", json=RUN)).status_code == 202


async def test_nobody_bears_the_name_that_stands_for_an_erased_actor(service: Service):
    settings = service.settings
    now = datetime.now(UTC)
    claims = {
        "sub": "erased:" + "0" * 64,
        "iss": settings.jwt_issuer,
        "aud": settings.jwt_audience,
        "iat": now,
        "exp": now + timedelta(hours=1),
    }
    client = await service.http(jwt.encode(claims, settings.signing_secret, algorithm="HS256"))
    assert (await client.get("/v1/cases")).status_code == 401
