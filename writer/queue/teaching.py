"""Decrypts a case and learns from its run, by rules or by a language model, as its profile's settings choose."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from policy.channels import words
from retrieval.database.database import Database
from retrieval.sealed import MOVES, TERMS, CaseWords
from writer.analysis.calls import StoredRun, error_signatures
from writer.analysis.fixes import failures_of
from writer.analysis.moves import moves_of
from writer.analysis.recount import recount
from writer.analysis.tool_use import tools_used
from writer.errors import LeaseLost
from writer.facts.forms import are_compiled
from writer.privacy.keys import Keyring
from writer.privacy.seal import unseal_sized
from writer.privacy.words import Words
from writer.procedures.learn_from_run import RunToLearnFrom, ScriptSettings, learn_from_run
from writer.procedures.ports import Learners
from writer.procedures.thread import computed
from writer.profiles import Profile
from writer.queue.case import Work
from writer.queue.correction import corrected_plan
from writer.queue.lease import Lease
from writer.queue.sessions import facts_in_run
from writer.retain.plan import given_plan
from writer.run import OF_PROCEDURES

Result = TypeVar("Result")

SHORT = 8_192
"""Maximum bytes of a run's decrypted payload that is analysed on the event loop; longer runs use a thread.

A run of this size, some 70 failed command lines, holds the loop for up to some 50 ms at a time.
"""


@dataclass(frozen=True, slots=True)
class Teaching:
    """The learners, which learn procedures from runs, and the keys that decrypt the runs' cases.

    Attributes:
        rules: learners by rule, for profiles that want no language model.
        llm: builds the learners of a profile that wants a language model; None: the service has no model.
    """

    database: Database
    keyring: Keyring
    rules: Learners
    llm: Callable[[Profile], Learners] | None

    def by_llm(self, work: Work) -> bool:
        """Returns whether a language model learns from the run."""
        return self.llm is not None and work.case.analyst == "llm"

    async def open(self, work: Work) -> None:
        """Decrypts the case's task, plan and payload with its user's key.

        Raises:
            LeaseLost: the user's key is gone, because the user was erased.
        """
        held = work.held
        key = self.keyring.remembered(held.user_sub)
        if key is None:
            async with self.database.as_user(held.user_sub, held.claimed_at) as connection:
                key = await self.keyring.find(connection, held.user_sub)
        if key is None:
            raise LeaseLost("the user's key is gone")
        payload = work.case.payload
        work.opened, work.payload_bytes = unseal_sized(payload, key.key, user_sub=held.user_sub, case_id=held.row_id)
        work.origin = work.opened.get("origin", {})  # older cases have none
        work.seal = Words(held.user_sub, key)
        work.text = CaseWords(work.case.task, work.case.plan)
        if work.case.words is not None:
            work.text = work.seal.open_case(held.row_id, work.case.words)

    async def count(self, work: Work) -> None:
        """Stores in ``work`` the numbers of its opened case: keyed hashes, and corrections by the calls' outputs."""
        await self._compute(work, _count)

    async def teach(self, work: Work, renew: Callable[[Lease], Awaitable[None]]) -> None:
        """Stores in ``work`` what is learned from its opened case; calls ``renew`` before each call of a model."""
        held, case, opened = work.held, work.case, work.opened
        run, plan = await self._compute(work, _analyse)
        brought = opened["procedure"] or {"data": None}
        given: dict[str, Any] = {name: opened.get(name) for name in OF_PROCEDURES}  # older cases have none
        given["no_failure"] = opened["procedure"] is not None and brought["data"] is None
        ended = RunToLearnFrom(
            run, case.reward, case.reward_source, brought["data"], used=work.used, tags=case.tags, plan=plan, **given
        )
        terms = ScriptSettings(None if case.abstraction == "off" else case.abstraction, case.least_success)
        if self.llm is None or not self.by_llm(work):
            work.taught = await learn_from_run(ended, terms, self.rules)
            return
        teachers = self.llm(Profile(held.user_sub, held.agent_key, held.claimed_at))
        work.taught = await learn_from_run(ended, terms, teachers, before_each=lambda: renew(held))

    async def _compute(
        self, work: Work, act: Callable[[Work, StoredRun, Mapping[str, Any]], Result]
    ) -> tuple[StoredRun, Result]:
        """Returns the run of an opened case, and the result of the act.

        The act is in a thread if the run is long, or its turns may be the first, which wait for patterns to compile.
        """
        opened, work.opened = work.opened, {}
        short = work.payload_bytes <= SHORT and (not opened["turns"] or are_compiled())
        if short:
            await asyncio.sleep(0)  # lets others have the event loop between two runs
        told = opened["tool_traces"], opened["turns"]
        run = StoredRun(work.text.task, work.case.outcome, *told, work.text.plan, short)
        return run, await computed(run, act, work, run, opened)


def _count(work: Work, run: StoredRun, opened: Mapping[str, Any]) -> None:
    """Stores in the work the numbers of its run, and the errors of its calls."""
    work.terms = work.seal.numbers(TERMS, words(work.text.task))
    work.moves = work.seal.numbers(MOVES, moves_of(run))
    if run.tool_traces:
        work.counts, work.errors = recount(run), error_signatures(run)
        work.corrected_plan = corrected_plan(work, run, opened["tool_traces"])


def _analyse(work: Work, run: StoredRun, opened: Mapping[str, Any]) -> list[str]:
    """Stores in the work the facts, tool use and failures of its run, and returns the plan given beside the calls.

    Works in one thread, for each costs.
    """
    if work.case.session_id is None and "in_session" not in opened:
        work.facts = facts_in_run(opened["turns"], work.case.created_at)
    if not run.tool_traces:
        return []
    given = given_plan(opened["tool_traces"], run.calls, run.plan)
    work.tools, work.failures = tools_used(run), failures_of(run, given)
    return given
