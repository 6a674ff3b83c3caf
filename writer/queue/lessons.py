"""Learns from runs whose cases can be found: from new ones, and again from those that a later reward calls failed."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from operator import itemgetter
from typing import Any, ClassVar
from uuid import UUID

from sqlalchemy import delete, func, insert, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.errors import CasebankError, EmbedderMisbehaved, EmbedderRefused
from retrieval.tables.cases import case_tools
from retrieval.tables.kinds import has_failed
from retrieval.tables.procedures import reflections
from retrieval.tasks import all_ended
from retrieval.telemetry import log, stage
from writer.advice.store import advised, failure_rows, settle_advice, store_failures
from writer.analysis.calls import StoredRun
from writer.analysis.fixes import failures_of
from writer.analysis.placeholders import without_placeholders
from writer.analysis.tool_use import tools_used
from writer.facts.store import Provenance, store_facts
from writer.procedures import versions
from writer.procedures.learn_from_run import RunToLearnFrom, learn_from_run
from writer.procedures.ports import Learners, Source
from writer.procedures.withdrawal import ask_to_reflect, retire_lessons, withdraw_learned
from writer.profiles import Profile
from writer.queue.batches import Batches
from writer.queue.case import ClaimedCase, Work, by_agent
from writer.queue.lease import Lease
from writer.queue.sessions import MOST_FACTS, facts_in_run
from writer.retain.plan import given_plan
from writer.rewards.feedback import credit_run
from writer.run import OF_PROCEDURES

READ_AT_ONCE = 4
"""Maximum number of runs that a language model reads for this worker at the same time, once it answered quickly."""
QUICK_S = 5.0
"""Longest time in seconds that the model may take before it is asked about READ_AT_ONCE runs at the same time.

A server that answers one request after the other then answers the last one within the time that a request may take.
"""


@dataclass(slots=True)
class LessonHandler(Batches):
    """Learns procedures, facts and failures from runs, and credits what they used; or only revises what they used.

    Attributes:
        rules: learners by rule, for profiles that want no language model.
        llm: builds the learners of a profile that wants a language model; None: the service has no model.
        pgvector: true if the database compares vectors.
    """

    rules: Learners
    llm: Callable[[Profile], Learners] | None
    pgvector: bool
    goes_without: ClassVar[tuple[type[CasebankError], ...]] = (EmbedderRefused, EmbedderMisbehaved)
    _asked_last: str = field(default="", init=False)
    """The last user whose run a language model read; the users after this one, by name, come first."""
    quick_s: float = field(default=QUICK_S, init=False)
    was_quick: bool = field(default=False, init=False)
    """True if the language model last read its runs within ``quick_s``."""

    async def handle(self, leases: Sequence[Lease]) -> None:
        """Learns from the leased runs, each user's together, and then from some of those that a language model reads.

        The model reads one run, or READ_AT_ONCE runs beside each other if it answered quickly the time before. The
        others are queued again at once: neither new cases nor other workers wait for several answers, one after the
        other.

        Raises:
            DatabaseUnavailable: some of the runs are not learned from.
        """
        with stage("work.learn"):
            batch = await self.read(leases)
            turns, numbered = Counter[str](), list[tuple[tuple[int, bool, str], Work]]()
            for work in filter(self._by_llm, batch):  # their users take turns, beginning after the one asked last
                user = work.held.user_sub
                numbered.append(((turns[user], user <= self._asked_last, user), work))
                turns[user] += 1
            slow = [work for _, work in sorted(numbered, key=itemgetter(0))]
            asked = slow[: READ_AT_ONCE if self.was_quick else 1]
            await self.queue.release([work.held for work in slow[len(asked) :]])
            await self.finish_together([work for work in batch if not self._by_llm(work)])
            if asked:
                self._asked_last, began = asked[-1].held.user_sub, time.monotonic()
                await all_ended([self.finish_together([work]) for work in asked])
                self.was_quick = time.monotonic() - began <= self.quick_s

    def _by_llm(self, work: Work) -> bool:
        """Returns whether a language model learns from the run."""
        return self.llm is not None and work.case.analyst == "llm"

    async def think(self, work: Work) -> None:
        """Stores in ``work`` what is learned from its run; renews the lease before each call of a language model."""
        held, case, opened = work.held, work.case, work.opened
        run, plan = await self.compute(work, _analyse)
        brought = opened["procedure"] or {"data": None}
        given: dict[str, Any] = {name: opened.get(name) for name in OF_PROCEDURES}  # older cases have none
        given["no_failure"] = opened["procedure"] is not None and brought["data"] is None
        ended = RunToLearnFrom(
            run, case.reward, case.reward_source, brought["data"], used=work.used, tags=case.tags, plan=plan, **given
        )
        terms = None if case.abstraction == "off" else case.abstraction, case.least_success
        if self.llm is None or not self._by_llm(work):
            work.taught = await learn_from_run(ended, self.rules, *terms)
            return
        teachers = self.llm(Profile(held.user_sub, held.agent_key, held.claimed_at))
        work.taught = await learn_from_run(ended, teachers, *terms, before_each=lambda: self.queue.renew(held))

    def texts(self, work: Work) -> list[str]:
        """Returns the triggers of the learned procedures."""
        return list(map(without_placeholders, work.taught.triggers()))

    async def finish(self, connection: AsyncConnection, batch: Sequence[Work]) -> dict[UUID, str]:
        """Stores the lessons of the runs, of those that are not new only the revisions; returns "learned" for each."""
        user_sub = batch[0].held.user_sub
        mine = reflections.c.user_sub == user_sub
        new = [work for work in batch if work.case.is_new]
        for work in batch:
            held, vectors = work.held, iter(work.vectors)
            source = Source(user_sub, held.agent_key, held.row_id, self.embedder.model, self.pgvector)
            for draft in work.taught.drafts:
                vector = next(vectors)
                if work.case.is_new:
                    await versions.add(connection, source, draft, vector)
            for used, draft in work.taught.revisions:
                await versions.revise(connection, source, used, draft, next(vectors))
        if new:
            await _store_facts(connection, new)
            await _store_failures(connection, new)
            for work in new:
                if work.case.retrieval_id is not None:
                    await credit_run(connection, user_sub, "worker", work.held.row_id)
            ids = [work.held.row_id for work in new]
            await connection.execute(delete(reflections).where(mine, reflections.c.id.in_(ids)))
        if again := [work.held.row_id for work in batch if not work.case.is_new]:
            done = {"status": "ready", "lease_token": None, "last_error": None, "available_at": func.now()}
            await connection.execute(update(reflections).where(mine, reflections.c.id.in_(again)).values(done))
        late = [work.held.row_id for work in new if _failed(work.now) and not _failed(work.case)]
        if late:  # a reward showed meanwhile that these runs failed
            await withdraw_learned(connection, user_sub, "worker", late)
            await ask_to_reflect(connection, user_sub, late)
        return dict.fromkeys((work.held.row_id for work in batch), "learned")

    def ended(self, work: Work, how: str) -> None:
        """Logs the end of the work on a run."""
        log.info("lessons.ended", how=how, case_id=str(work.held.row_id))


def _analyse(work: Work, run: StoredRun, opened: Mapping[str, Any]) -> list[str]:
    """Stores in the work the facts, tool use and failures of its run, and returns the plan given beside the calls.

    Works in one thread, for each costs.
    """
    if work.case.session_id is None and "in_session" not in opened:
        work.facts = facts_in_run(opened["turns"], work.case.created_at)
    if not run.tool_traces:
        return []
    given = given_plan(opened["tool_traces"], run.plan)
    work.tools, work.failures = tools_used(run), failures_of(run, given)
    return given


async def _store_facts(connection: AsyncConnection, batch: Sequence[Work]) -> None:
    """Stores the tool use of the runs, and the facts in their turns."""
    owners = by_agent(batch)
    used = [
        {"user_sub": user_sub, "agent_key": agent_key, "case_id": work.held.row_id, **asdict(use)}
        for (user_sub, agent_key), mine in owners
        for work in mine
        for use in work.tools
    ]
    if used:
        await connection.execute(insert(case_tools), used)
    for (_, agent_key), mine in owners:
        facts = [
            (fact, Provenance(agent_key, "worker", "run", work.case.created_at, case_id=work.held.row_id))
            for work in mine
            for fact in work.facts
        ]
        for first in range(0, len(facts), MOST_FACTS):
            await store_facts(connection, mine[0].seal, agent_key, facts[first : first + MOST_FACTS])


async def _store_failures(connection: AsyncConnection, batch: Sequence[Work]) -> None:
    """Stores what failed in the runs, and settles the advice that they got and the lessons that failed again."""
    rows = [
        row for work in batch for row in failure_rows(work.seal, work.held.agent_key, work.held.row_id, work.failures)
    ]
    await store_failures(connection, rows)
    were_advised = await advised(connection, batch[0].held.user_sub, [work.held.row_id for work in batch])
    for (_, agent_key), mine in by_agent(batch):
        await retire_lessons(connection, mine[0].seal, agent_key, [each for work in mine for each in work.failures])
    for work in batch:
        if work.held.row_id in were_advised:
            await settle_advice(connection, work.seal, work.held.row_id, work.failures)


def _failed(case: ClaimedCase) -> bool:
    return has_failed(case.outcome, case.reward, case.reward_source)
