"""The parts of a running process, made from the settings: database, embedder, keys, reader, worker, admission."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Literal

from sqlalchemy import text

from app import postgres
from app.admission.admission import Admission
from app.admission.backlog import Backlog, PendingBounds
from app.admission.buckets import Buckets
from app.admission.quotas import KINDS, SCOPES, Quota
from app.admission.turns import Places, Turns
from app.auth.keys import PublishedKeys, SharedSecret
from app.auth.tokens import TokenVerifier
from app.postgres.pools import service_database
from app.postgres.revisions import is_newest
from app.providers.wordllama import WordLlamaEmbedder
from app.settings import Settings
from retrieval.database.database import Database
from retrieval.database.rest import Rest
from retrieval.errors import CasebankError, SchemaOutdated
from retrieval.ports import Embedder, Model
from retrieval.retrieve import Reader
from retrieval.rewriting.choice import Asker, Rewriting
from writer.advice.ask import Adviser
from writer.audit.signing import AuditKey, LaterKey, signing
from writer.audit.tombstone_chain import begin_seals
from writer.privacy import engine, numbers
from writer.privacy.installation_key import find_or_make
from writer.privacy.keys import Keyring
from writer.privacy.master_keys import MasterKeys, agree
from writer.procedures.llm.learners import LlmLearners
from writer.procedures.llm.token_budget import Account
from writer.procedures.rules.learners import RuleLearners
from writer.profiles import Profile
from writer.queue.queue import Pace
from writer.queue.summarist import Summarist
from writer.queue.wake import LONGEST_S
from writer.queue.worker import Worker

if TYPE_CHECKING:
    from app.providers.llm import OpenAIModel

ASK_AGAIN_S = 2.0
"""Seconds between the first two looks at a database that waits for its migration; later pauses are longer."""

_VECTOR_COLUMN = text(
    "SELECT format_type(atttypid, atttypmod) FROM pg_attribute"
    " WHERE attrelid = to_regclass('case_embeddings') AND attname = 'embedding'",
)


@dataclass(frozen=True, slots=True)
class Runtime:
    """The parts of a running process, put together."""

    settings: Settings
    database: Database
    rest: Rest
    embedder: Embedder
    keyring: Keyring
    rewriting: Rewriting
    reader: Reader
    adviser: Adviser
    worker: Worker
    admission: Admission


@asynccontextmanager
async def running(settings: Settings) -> AsyncIterator[Runtime]:
    """Connects to the database (starting and migrating the embedded one) and yields the parts; closes them after.

    Raises:
        MasterKeyMismatch: the users' keys are wrapped with a master key that these settings lack.
    """
    if settings.database_url is not None:
        async with _parts(settings, settings.database_url) as runtime:
            yield runtime
        return
    async with owner_url(settings) as url:
        if not await is_newest(url):
            # .2 s and 7 MiB, which a start without a migration does without
            from app.postgres.migrate import migrate  # noqa: PLC0415

            await migrate(url, pgvector=settings.pgvector)
        async with _parts(settings, url) as runtime:
            yield runtime


@asynccontextmanager
async def owner_url(settings: Settings) -> AsyncIterator[str]:
    """Yields the URL for migrations; starts the embedded Postgres if it is the database."""
    if settings.database_url is not None:
        yield settings.database_url
        return
    settings.make_home()
    with postgres.running(settings.home) as server:
        yield server.url()


@asynccontextmanager
async def _parts(settings: Settings, url: str) -> AsyncIterator[Runtime]:
    engine.warm_up()
    numbers.warm_up()
    async with AsyncExitStack() as stack:
        embedder = make_embedder(settings)
        stack.push_async_callback(embedder.aclose)
        database = await stack.enter_async_context(
            service_database(
                url, pool_size=settings.pool_size, timeout_s=settings.timeouts_s.database, idle_s=settings.idle_s
            )
        )
        keyring = Keyring(settings.master_key_bytes, settings.old_master_keys, seals_words=settings.seal == "all")
        with suppress(SchemaOutdated):  # requests are refused until it is migrated, and then it is asked again
            async with database.as_worker() as connection:
                await agree(connection, keyring.masters)
        database, later = await signed(database, keyring.masters)
        rewriting, llm, summarist = Rewriting(database), None, None
        if settings.llm == "openai":
            patient, quick = make_model(settings), make_model(settings, settings.timeouts_s.llm_rewrite)
            stack.push_async_callback(patient.aclose)
            stack.push_async_callback(quick.aclose)
            account = Account(database, settings.llm_tokens_per_day)

            def rewriter(asker: Asker) -> Model:
                payer = Profile(asker.user_sub, asker.agent_key, asker.authorised_at)
                return account.model(quick, payer, "rewrite")

            rewriting = Rewriting(database, rewriter)
            llm = partial(LlmLearners, partial(account.model, patient), RuleLearners())
            summarist = Summarist(database, keyring, patient, account)
        rest, order = Rest(database, settings.idle_s), settings.first_order
        pgvector = later.key is not None and await has_pgvector(database)
        pace = Pace(
            poll_s=settings.worker_pace.poll_s,
            lease=timedelta(seconds=settings.worker_pace.lease_s),
            max_attempts=settings.worker_pace.attempts,
            backoff_s=settings.worker_pace.backoff_s,
        )
        runtime = Runtime(
            settings=settings,
            database=database,
            rest=rest,
            embedder=embedder,
            keyring=keyring,
            rewriting=rewriting,
            reader=Reader(database, embedder, pgvector, settings.explore, rewriting, keyring, first_order=order),
            adviser=Adviser(database, keyring),
            worker=Worker(
                database, embedder, keyring, pgvector, pace, llm=llm, summarist=summarist, rest=rest, first_order=order
            ),
            admission=make_admission(settings, database),
        )
        if later.key is None:
            stack.callback(asyncio.create_task(_ask_again(runtime, later)).cancel)
        yield runtime


async def signed(database: Database, held: MasterKeys) -> tuple[Database, LaterKey]:
    """Returns the database, on the same connections, that signs each new entry of the audit; and its key.

    The key is made if need be. Until the database is migrated there is no key, and it takes no audit entry.

    Raises:
        MasterKeyMismatch: this process does not hold the database's master key.
        SealBroken: the installation's keys were wrapped by another master key.
    """
    later = LaterKey()
    with suppress(SchemaOutdated):
        later.key = await _audit_key(database, held)
    return replace(database, engine=signing(database.engine, later)), later


async def _audit_key(database: Database, held: MasterKeys) -> AuditKey:
    async with database.as_worker() as connection:
        key, is_new = await find_or_make(connection, held, "audit")
        if is_new:
            await begin_seals(connection, AuditKey(key))
    return AuditKey(key)


async def _ask_again(runtime: Runtime, later: LaterKey) -> None:
    """Waits for the migration, and then sets what a start before it could not read: pgvector and the audit's key."""
    wait_s = ASK_AGAIN_S
    while later.key is None:
        await asyncio.sleep(wait_s)
        await runtime.rest.awake.wait()
        wait_s = min(LONGEST_S, 1.1 * wait_s)
        with suppress(CasebankError):
            key = await _audit_key(runtime.database, runtime.keyring.masters)
            runtime.reader.pgvector = runtime.worker.lessons.pgvector = await has_pgvector(runtime.database)
            later.key = key


async def has_pgvector(database: Database) -> bool:
    """Returns whether the stored vectors are pgvector's, which the database can compare."""
    async with database.as_worker() as connection:
        return str(await connection.scalar(_VECTOR_COLUMN)).startswith("vector")


def make_admission(settings: Settings, database: Database) -> Admission:
    """Returns the admission of requests, with the limits of the settings."""
    limits, wait_s = settings.limits, settings.timeouts_s.turn
    quotas = {
        (scope, kind): Quota.per_minute(f"{scope}-{kind}", getattr(limits, f"{scope}_{kind}"), limits.burst_s)
        for scope in SCOPES
        for kind in KINDS
    }
    places = Places(limits.requests or sys.maxsize, limits.user_requests or sys.maxsize, wait_s=wait_s)
    return Admission(
        quotas={of: quota for of, quota in quotas.items() if quota is not None},
        buckets=Buckets(database),
        turns=Turns(places) if limits.requests or limits.user_requests else None,
        backlog=Backlog(database, PendingBounds(limits.user_pending, limits.pending)),
        wait_s=wait_s,
    )


def make_embedder(settings: Settings) -> Embedder:
    """Returns the embedder of the settings."""
    if settings.embedder == "wordllama":
        return WordLlamaEmbedder()
    # A third of a second to load, with the HTTP client, which only such a server needs.
    from app.providers.openai import Endpoint, OpenAIEmbedder  # noqa: PLC0415
    from app.providers.wire import Patience  # noqa: PLC0415

    ask_dimension: bool | Literal["try"] = "try" if "openai_embedding_dimension" in settings.model_fields_set else False
    if settings.openai_ask_dimension is not None:
        ask_dimension = settings.openai_ask_dimension
    endpoint = Endpoint(
        base_url=settings.openai_base_url,
        api_key=settings.openai_api_key.get_secret_value(),
        model=settings.openai_embedding_model,
        dimension=settings.openai_embedding_dimension,
        ask_dimension=ask_dimension,
        max_chars=settings.openai_max_chars,
    )
    return OpenAIEmbedder(
        endpoint, Patience(timeout_s=settings.timeouts_s.embedder_request, budget_s=settings.timeouts_s.embedder)
    )


def make_model(settings: Settings, budget_s: float | None = None) -> "OpenAIModel":
    """Returns the language model of the settings, which answers within ``budget_s``, or else the settings' timeout.

    Each has a circuit breaker of its own: a model that is too slow to rewrite queries can still explain runs.
    """
    from app.providers.llm import ModelEndpoint, OpenAIModel  # noqa: PLC0415 - as above
    from app.providers.wire import Patience  # noqa: PLC0415

    endpoint = ModelEndpoint(
        base_url=settings.llm_base_url,
        model=settings.llm_model,
        api_key=settings.llm_api_key.get_secret_value(),
        max_output_tokens=settings.llm_max_output_tokens,
    )
    longest = settings.timeouts_s.llm if budget_s is None else budget_s
    return OpenAIModel(endpoint, Patience(timeout_s=min(settings.timeouts_s.llm_request, longest), budget_s=longest))


def make_verifier(settings: Settings) -> TokenVerifier:
    """Returns the verifier of tokens: RS256 and ES256 with a JWKS URL, else HS256 with the secret."""
    keys: PublishedKeys | SharedSecret
    if settings.jwks_url is None:
        keys = SharedSecret(settings.signing_secret, settings.older_signing_secrets)
    else:
        keys = PublishedKeys(settings.jwks_url)
    return TokenVerifier(keys, settings.jwt_issuer, settings.jwt_audience)
