"""Handles retained runs: learns from them, merges repeats, and makes their cases ready."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby, islice
from typing import Any
from uuid import UUID

from prometheus_client import Counter

from policy.channels import words
from retrieval.errors import (
    CasebankError,
    DatabaseUnavailable,
    Deadlocked,
    EmbedderMisbehaved,
    EmbedderRefused,
    UserErased,
)
from retrieval.ports import Embedder, Vector, embed_each
from retrieval.sealed import MOVES, TERMS, CaseWords
from retrieval.telemetry import caused_by, log, stage
from writer.analysis.calls import StoredRun
from writer.analysis.error_signatures import error_signatures
from writer.analysis.fixes import failures_of
from writer.analysis.moves import moves_of
from writer.analysis.recount import recount
from writer.analysis.tool_use import tools_used
from writer.errors import LeaseLost
from writer.privacy.keys import Keyring
from writer.privacy.master_keys import MasterKeyMismatch
from writer.privacy.seal import SealBroken, unseal
from writer.privacy.words import Words
from writer.procedures.learn_from_run import RunToLearnFrom, Terms, learn_from_run
from writer.procedures.ports import Learners
from writer.procedures.thread import computed
from writer.profiles import Profile
from writer.queue.case import ClaimedCase, Work, claimed, used_by
from writer.queue.correction import corrected_plan
from writer.queue.finish import Finish
from writer.queue.lease import Lease
from writer.queue.queue import Queue
from writer.queue.sessions import facts_in_run
from writer.replays.profile_replay import replay_if_due
from writer.retain.plan import given_plan

FINISHED = Counter("casebank_worker_cases_total", "Cases that left the queue, by how", ["how"])

MOST_BY_LLM = 16
"""Cases of a batch that a language model teaches; the others' leases would end before their turn."""
SHORT = 16_384
"""Most bytes of a run's sealed payload that are analysed on the event loop: a few milliseconds' work."""
AT_ONCE = 2
"""Users whose cases are stored at once: while the database works on one's, the worker prepares the other's."""
REPLAY_S = 5.0
"""Seconds after which a profile is replayed although further cases wait."""


@dataclass(slots=True)
class CaseHandler:
    """Learns from retained runs, merges repeats, and makes cases ready.

    Attributes:
        rules: the learners of every profile that wants no language model's.
        llm: builds the learners of a profile that wants a language model's; None: the service has no model.
    """

    queue: Queue
    embedder: Embedder
    keyring: Keyring
    pgvector: bool
    rules: Learners
    llm: Callable[[Profile], Learners] | None
    _to_replay: dict[tuple[str, str], tuple[float, datetime]] = field(default_factory=dict, init=False)
    """Profiles with finished cases since their last replay: since when, and the time of the claim."""
    _places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE), init=False)

    async def handle(self, leases: Sequence[Lease]) -> None:
        """Finishes the leased cases, each user's together, and last those that a language model teaches.

        Raises:
            DatabaseUnavailable: some of the cases are not finished.
        """
        with stage("work"):
            batch = await self._read(leases)
            await self._finish_together([work for work in batch if not self._by_llm(work)])
            slow = [work for work in batch if self._by_llm(work)]
            await self.queue.release([work.held for work in slow[MOST_BY_LLM:]])
            for work in slow[:MOST_BY_LLM]:
                await self._finish_together([work])
        for lease in leases:
            profile = lease.user_sub, lease.agent_key
            self._to_replay.setdefault(profile, (time.monotonic(), lease.claimed_at))

    async def replay(self, *, idle: bool) -> None:
        """Replays the profiles of finished cases, if they are due: all if ``idle``, else those that waited REPLAY_S.

        A replay costs more than a case, and a profile whose cases come one after the other needs only the last one's.

        Raises:
            DatabaseUnavailable: some of the profiles were not replayed.
        """
        with stage("work.replay"):
            for (user_sub, agent_key), (since, claimed_at) in list(self._to_replay.items()):
                if idle or time.monotonic() - since >= REPLAY_S:
                    del self._to_replay[user_sub, agent_key]
                    await replay_if_due(self.queue.database, Profile(user_sub, agent_key, claimed_at))

    async def _read(self, leases: Sequence[Lease]) -> list[Work]:
        """Returns the leased cases that are still there, the oldest first; each user's rows are read as that user."""
        batch = []
        by_user = sorted(leases, key=lambda held: held.user_sub)
        for user_sub, group in groupby(by_user, key=lambda held: held.user_sub):
            held = {lease.row_id: lease for lease in group}
            with suppress(UserErased):
                async with self.queue.database.as_user(user_sub, leases[0].claimed_at) as connection:
                    rows = await connection.execute(claimed(user_sub, leases[0].lease_token, list(held)))
                    cases = [ClaimedCase(*row) for row in rows]
                    key = self.keyring.remembered(user_sub)
                    if key is None or any(case.key_id != key.key_id for case in cases):
                        # one user's broken key, or one that another process wrapped, is a matter of that user's cases
                        with suppress(SealBroken, MasterKeyMismatch):
                            await self.keyring.find(connection, user_sub)  # to be remembered, for what is sealed
                    batch += [
                        Work(held[case.id], case, used=await used_by(connection, user_sub, case)) for case in cases
                    ]
        # in the order of retaining, the first of equal runs is the one kept
        return sorted(batch, key=lambda work: work.held.row_id)

    def _by_llm(self, work: Work) -> bool:
        return self.llm is not None and work.case.analyst == "llm"

    async def _finish_together(self, batch: Sequence[Work]) -> None:
        """Opens the cases, learns from each, and embeds and stores them all in one batch."""
        with stage("work.teach"):
            opened = [work for work in batch if await self._goes_on(work, self._open)]
            taught = [work for work in opened if await self._goes_on(work, self._teach)]
        if taught:
            await self._embed(taught)

    async def _embed(self, batch: Sequence[Work], *, triggers: bool = True) -> None:
        """Embeds the cases' tasks, and with ``triggers`` their procedures' triggers, and finishes the cases.

        All texts go to the embedder at once. If it rejects them, the cases go one by one, then each without triggers.
        A task that is rejected even alone would be rejected again: its case is stored without a vector and found by its
        words, and ``casebank reembed`` adds the vector later. After any other error the cases go back to the queue.
        """
        texts = [work.texts if triggers else work.texts[:1] for work in batch]
        try:
            with stage("work.embed"):
                vectors = iter(await embed_each(self.embedder, [text for some in texts for text in some]))
        except CasebankError as error:
            is_one_text = len(batch) == 1 and len(texts[0]) == 1
            if isinstance(error, EmbedderRefused | EmbedderMisbehaved) and not is_one_text:
                for each in batch:  # the fault may be one text's, and must not be the others'
                    await self._embed([each], triggers=len(batch) > 1)
                return
            for work in batch:
                if isinstance(error, EmbedderRefused):
                    log.warning("work.no_vector", case_id=str(work.held.row_id))
                    await self._store([(work, [])])
                    continue
                with caused_by(work.origin, "work.case"):
                    await self.queue.hand_back([work.held], error)
            return
        await self._store([(work, list(islice(vectors, len(some)))) for work, some in zip(batch, texts, strict=True)])

    async def _store(self, batch: Sequence[tuple[Work, Sequence[Vector | None]]]) -> None:
        """Stores the cases, each with the vectors of its first texts; its further texts have no vector.

        The cases of one user are finished together. If that fails, each is finished alone, for the fault may be one's.
        """
        for work, vectors in batch:
            missing: list[Vector | None] = [None] * (len(work.texts) - len(vectors))
            work.vector, *work.trigger_vectors = [*vectors, *missing]
        works = sorted((work for work, _ in batch), key=lambda work: work.held.user_sub)
        with stage("work.finalise"):
            users = [self._store_users(list(group)) for _, group in groupby(works, key=lambda work: work.held.user_sub)]
            for ended in await asyncio.gather(*users, return_exceptions=True):
                if ended is not None:
                    raise ended

    async def _store_users(self, batch: list[Work]) -> None:
        """Finishes cases of one user together, while the cases of few others are finished."""
        async with self._places:
            ended = await self._end_together(batch) if len(batch) > 1 else {}
            for work in batch:
                if (how := ended.get(work.held.row_id)) is None:
                    await self._goes_on(work, self._finalise_alone)
                else:
                    with caused_by(work.origin, "work.case"):
                        _count(work, how)

    async def _end_together(self, batch: Sequence[Work]) -> dict[UUID, str]:
        """Finishes cases of one user, and returns how those ended that need no further try alone."""
        try:
            return await self._finalise(batch)
        except Deadlocked as error:
            log.info("work.one_by_one", error=type(error).__name__)
        except DatabaseUnavailable:
            raise
        except Exception as error:  # noqa: BLE001 - one bad case must not stop the others
            log.info("work.one_by_one", error=type(error).__name__)
        for work in batch:
            work.now = work.case
        return {}

    async def _goes_on(self, work: Work, step: Callable[[Work], Awaitable[str | None]]) -> bool:
        """Takes one step of the work on a case and returns True if further steps follow; otherwise counts the end.

        Raises:
            DatabaseUnavailable: it is unknown whether the step was taken.
        """
        with caused_by(work.origin, "work.case"):
            how = await self.queue.attempt([work.held], step(work))
            if how is not None:
                _count(work, how)
        return how is None

    async def _open(self, work: Work) -> None:
        """Decrypts the case's task, plan and payload with its user's key.

        Raises:
            LeaseLost: the user's key, and thus the user, is gone.
        """
        held = work.held
        key = self.keyring.remembered(held.user_sub)
        if key is None:
            async with self.queue.database.as_user(held.user_sub, held.claimed_at) as connection:
                key = await self.keyring.find(connection, held.user_sub)
        if key is None:
            raise LeaseLost("the user's key is gone")
        work.opened = unseal(work.case.payload, key.key, user_sub=held.user_sub, case_id=held.row_id)
        work.origin = work.opened.get("origin", {})  # older cases have none
        work.seal = Words(held.user_sub, key)
        work.text = CaseWords(work.case.task, work.case.plan)
        if work.case.words is not None:
            work.text = work.seal.open_case(held.row_id, work.case.words)

    async def _teach(self, work: Work) -> None:
        """Learns facts, procedures and tool use from the run, by the rules or the language model its profile chose."""
        held, case, opened = work.held, work.case, work.opened
        work.opened = {}
        short = len(case.payload) <= SHORT
        if short:
            await asyncio.sleep(0)  # lets others have the event loop between two runs
        run = StoredRun(work.text.task, case.outcome, opened["tool_traces"], opened["turns"], work.text.plan, short)
        plan = await computed(run, _analyse, work, run, opened)
        brought = opened["procedure"] or {"data": None}
        given: dict[str, Any] = {name: opened.get(name) for name in ("task_type", "trigger")}  # older cases have none
        given["no_failure"] = opened["procedure"] is not None and brought["data"] is None
        ended = RunToLearnFrom(
            run, case.reward, case.reward_source, brought["data"], used=work.used, tags=case.tags, plan=plan, **given
        )
        terms = Terms(None if case.abstraction == "off" else case.abstraction, case.least_success)
        if self.llm is None or not self._by_llm(work):
            work.taught = await learn_from_run(ended, terms, self.rules)
            return
        teachers = self.llm(Profile(held.user_sub, held.agent_key, held.claimed_at))
        work.taught = await learn_from_run(ended, terms, teachers, before_each=lambda: self.queue.renew(held))

    async def _finalise(self, batch: Sequence[Work]) -> dict[UUID, str]:
        """Finishes cases of one user, and returns how each ended."""
        held = batch[0].held
        async with self.queue.database.as_user(held.user_sub, held.claimed_at) as connection:
            return await Finish(connection, held.user_sub, self.embedder, self.pgvector).all_of(batch)

    async def _finalise_alone(self, work: Work) -> str:
        """Finishes one case, and returns how it ended.

        Raises:
            LeaseLost: another worker has the case, or it is gone; nothing was stored.
        """
        ended = await self._finalise([work])
        if work.held.row_id not in ended:
            raise LeaseLost("the lease ran out, or the case is gone")
        return ended[work.held.row_id]


def _count(work: Work, how: str) -> None:
    """Counts and logs the end of the work on a case."""
    FINISHED.labels(how).inc()
    log.info("work.ended", how=how, case_id=str(work.held.row_id))


def _analyse(work: Work, run: StoredRun, opened: Mapping[str, Any]) -> list[str]:
    """Stores in the work the facts, numbers, tool use and failures of its run, and returns the plan given beside calls.

    Works in one thread, for each costs.
    """
    if work.case.session_id is None:
        work.facts = facts_in_run(opened["turns"], work.case.created_at)
    if work.seal is not None:
        work.terms = work.seal.numbers(TERMS, words(work.text.task))
        work.moves = work.seal.numbers(MOVES, moves_of(run))
    if not run.tool_traces:
        return []
    work.tools, work.counts = tools_used(run), recount(run)
    given = given_plan(opened["tool_traces"], run.calls, run.plan)
    work.errors, work.failures = error_signatures(run), failures_of(run, given)
    work.corrected_plan = corrected_plan(work, run, opened["tool_traces"])
    return given
