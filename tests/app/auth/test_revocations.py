"""Revoked tokens: refused on every replica soon after, and nothing of them kept but digests."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import jwt
import pytest
from sqlalchemy import text

from app.auth.errors import NotAuthenticated
from app.auth.revocations import MAX_AGE_S, Revocation, Revocations, revoke, sha256
from app.auth.tokens import TokenVerifier
from app.main import create_app
from retrieval.errors import DatabaseUnavailable
from tests.service import Service


@pytest.fixture
async def replica(service: Service) -> AsyncIterator[Service]:
    """A second process on the same database."""
    app = create_app(service.settings.model_copy(update={"worker_in_service": False}))
    async with AsyncExitStack() as clients, app.router.lifespan_context(app):
        yield Service(app, service.settings, clients)


async def statuses(token: str, *services: Service) -> set[int]:
    clients = [await service.http(token) for service in services]
    return {(await client.get("/v1/cases")).status_code for client in clients}


async def revoked(revocation: Revocation, token: str, *services: Service) -> None:
    """Revokes it, and waits until every replica knows: that it refuses this token."""
    async with services[0].runtime.database.as_worker() as connection:
        await revoke(connection, revocation)
    async with asyncio.timeout(60):
        while await statuses(token, *services) != {401}:  # noqa: ASYNC110 - a replica tells nobody
            await asyncio.sleep(0.05)


async def test_a_revoked_token_is_refused_on_every_replica_and_the_users_others_are_not(
    service: Service, replica: Service
):
    user = f"user-{uuid4()}"
    lost, kept = service.token(user), service.token(user)
    assert await statuses(lost, service, replica) == {200}
    jti = jwt.decode(lost, options={"verify_signature": False})["jti"]
    await revoked(Revocation("lost", jti=jti), lost, service, replica)
    assert await statuses(kept, service, replica) == {200}


async def test_all_tokens_of_a_subject_up_to_now_are_refused_even_those_dated_ahead(service: Service, replica: Service):
    user, other = f"user-{uuid4()}", f"user-{uuid4()}"
    tokens = [service.token(user, age=timedelta(seconds=age)) for age in (3000, 0, -25)]
    await revoked(Revocation("left us", subject=user), tokens[0], service, replica)
    assert [await statuses(token, service, replica) for token in tokens] == [{401}] * 3
    assert await statuses(service.token(other), service, replica) == {200}


async def test_a_replica_that_starts_later_knows_what_was_revoked(service: Service):
    user = f"user-{uuid4()}"
    token = service.token(user)
    await revoked(Revocation("left us", subject=user), token, service)
    fresh = Revocations()
    await fresh.refresh(service.runtime.database)
    assert fresh.revoked(user, None, datetime.now(UTC) - timedelta(minutes=1))


async def test_a_token_that_is_good_for_the_leeway_after_its_end_can_be_revoked_until_then(service: Service):
    user = f"user-{uuid4()}"
    late = service.token(user, age=timedelta(hours=1, seconds=5))
    known = jwt.decode(late, options={"verify_signature": False})
    assert await statuses(late, service) == {200}
    revocation = Revocation("lost", known["jti"], user, datetime.fromtimestamp(known["exp"], UTC))
    async with service.runtime.database.as_worker() as connection:
        await revoke(connection, revocation)
    fresh = Revocations()
    await fresh.refresh(service.runtime.database)
    assert fresh.revoked(user, known["jti"], datetime.now(UTC))


async def test_neither_token_nor_name_is_kept(service: Service):
    user, jti = f"user-{uuid4()}", uuid4().hex
    async with service.runtime.database.as_worker() as connection:
        await revoke(connection, Revocation("lost", jti=jti, subject=user))
        (row,) = await connection.execute(
            text("SELECT token_revocations::text AS kept FROM token_revocations WHERE jti_sha256 = :jti"),
            {"jti": sha256(jti)},
        )
    assert jti not in row.kept
    assert user not in row.kept


async def test_where_nobody_can_say_what_was_revoked_nobody_is_let_in(service: Service):
    clock = [0.0]
    revocations = Revocations(clock=lambda: clock[0])
    await revocations.refresh(service.runtime.database)
    assert not revocations.revoked("ada", None, datetime.now(UTC))
    clock[0] = MAX_AGE_S + 1
    with pytest.raises(DatabaseUnavailable):
        revocations.revoked("ada", None, datetime.now(UTC))


async def test_a_refused_token_says_that_it_was_revoked(service: Service):
    user = f"user-{uuid4()}"
    token = service.token(user)
    await revoked(Revocation("left us", subject=user), token, service)
    verifier: TokenVerifier = service.app.state.verifier
    with pytest.raises(NotAuthenticated, match="revoked"):
        await verifier.identify(f"Bearer {token}", None)
