"""Appends steps to a run under way: redacted, encrypted, and on disk before the agent takes the next step."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self
from uuid import UUID

from pydantic import Field, model_validator
from sqlalchemy import func, insert, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.database import Database
from retrieval.database.fast_path import FastConnection
from retrieval.pages.listing import steps_of_run
from retrieval.tables.kinds import RunStatus
from retrieval.tables.runs import run_steps, runs
from writer.analysis.calls import Call, calls_in
from writer.audit import note
from writer.author import Author
from writer.errors import IdempotencyConflict, RunEnded, UnknownReference
from writer.findings.extract import Finding, extract
from writer.findings.record import add_findings
from writer.privacy.keys import Keyring
from writer.privacy.names import nameable
from writer.privacy.redact import Redaction, redact
from writer.privacy.seal import Packed, PayloadTooLarge, pack
from writer.privacy.words import Words
from writer.profiles import open_for_writing
from writer.retain.references import wrong_reference
from writer.retain.under_way import UnderWay, lock_run, take_back
from writer.run import AgentKey, Strict, TaskText, ToolTrace

MOST_STEPS = 10_000
"""Maximum number of steps of a run, equal to that of the tool traces of a retain."""
MOST_AT_ONCE = 200
"""Maximum number of steps of one request."""
MOST_BYTES = 16 << 20
"""Maximum bytes of all steps of a run as JSON, so that its case can be decrypted."""


class Step(ToolTrace):
    """A tool trace with its place in the run."""

    number: int = Field(
        ge=1, le=MOST_STEPS, description="1-based place in the run; the same number again is the same step"
    )


class StepsTaken(Strict):
    """New steps of a run. The first call for an id begins the run."""

    agent: AgentKey
    task: TaskText = Field(description="task of the whole run; only that of the call that begins the run counts")
    retrieval_id: UUID | None = Field(
        default=None, description="the retrieval that the run began with; the call that begins it counts"
    )
    steps: list[Step] = Field(min_length=1, max_length=MOST_AT_ONCE)

    @model_validator(mode="after")
    def _numbers_differ(self) -> Self:
        if len({step.number for step in self.steps}) < len(self.steps):
            raise ValueError("two steps have the same number")
        return self


@dataclass(frozen=True, slots=True)
class PreparedStep:
    """A step, ready to be stored.

    Attributes:
        trace: the step's tool trace, redacted.
        packed: the trace, compressed.
        size: bytes of the trace as JSON.
        findings: findings of the step, if its tool has the kind that its name suggests.
        redacted: true if secrets were removed from the step's output.
    """

    number: int
    trace: Mapping[str, Any]
    packed: Packed
    size: int
    findings: Sequence[Finding]
    redacted: bool


@dataclass(frozen=True, slots=True)
class PreparedSteps:
    """Steps, redacted and packed, ready to be stored under the user's key.

    Attributes:
        calls: the steps as calls, in the order of their numbers.
    """

    agent_key: str
    task: str
    retrieval_id: UUID | None
    steps: Sequence[PreparedStep]
    calls: Sequence[Call]
    redactions: list[Redaction]


@dataclass(frozen=True, slots=True)
class AppendedSteps:
    """The state of a run after steps were appended to it."""

    status: RunStatus
    step_count: int
    redactions: list[Redaction]


def prepare_steps(taken: StepsTaken) -> PreparedSteps:
    """Returns the steps redacted, packed and searched for findings; this takes a while for long steps."""
    raw = taken.model_dump(mode="json")
    clean, redactions = redact(raw)
    steps = []
    for step, trace, given in zip(taken.steps, clean["steps"], raw["steps"], strict=True):
        del trace["number"]
        redacted = bool(redactions) and trace["output"] != given["output"]
        findings = extract(trace, {}, redacted=redacted)
        steps.append(PreparedStep(step.number, trace, pack(trace), len(json.dumps(trace)), findings, redacted))
    calls = calls_in(step.trace for step in sorted(steps, key=lambda step: step.number))
    return PreparedSteps(taken.agent, clean["task"], taken.retrieval_id, steps, calls, redactions)


async def append_steps(
    database: Database, keyring: Keyring, run_id: UUID, new: PreparedSteps, author: Author
) -> AppendedSteps:
    """Adds the steps to a run, and returns the run's state once they are on disk; the first steps begin the run.

    A step that is stored already is not added again. A run that was aborted because no step came is under way again.

    Raises:
        IdempotencyConflict: a number was used before, for another step; no step is added.
        MemoryOff: the user switched off writing for this agent.
        RunEnded: the run was retained.
        UnknownReference: the run is another agent's, or began with another agent's retrieval.
        PayloadTooLarge: the run would have more than MOST_BYTES.
        SecretInName: the agent's name looks like a secret.
        PathTooLong: a path in a step is longer than any path of Linux.
        DatabaseUnavailable: the steps may or may not be added; the caller can safely send them again.
    """
    nameable(new.agent_key)
    async with database.as_user(author.user_sub, author.authorised_at) as connection:
        first = new.agent_key, new.task, new.retrieval_id
        words, run, begins = await open_run(connection, keyring, run_id, first, author)
        rows = await connection.execute(steps_of_run(author.user_sub, run_id, [step.number for step in new.steps]))
        opened = ((row.number, words.open("step", row.payload, run_id, row.number)) for row in rows)
        there = await asyncio.to_thread(dict, opened)  # these may be megabytes
        for step in new.steps:
            if step.number in there and there[step.number] != step.trace:
                raise IdempotencyConflict(f"step {step.number} was sent before, with other contents")
        fresh = [step for step in new.steps if step.number not in there]
        step_count = run.step_count + len(fresh)
        if fresh:
            await take_back(connection, author, run)
            await _add(connection, words, run, fresh)
            kinds = run.tool_kinds  # declared by the profile: they count before the usual ones

            def findings_of(step: PreparedStep) -> Sequence[Finding]:
                declared = step.trace["tool"] in kinds
                return extract(step.trace, kinds, redacted=step.redacted) if declared else step.findings

            findings = await asyncio.to_thread(lambda: [(step.number, 0, findings_of(step)) for step in fresh])
            await add_findings(connection, words, run.agent_key, run.id, findings)
            numbers = [step.number for step in fresh]
            action = "begin_run" if begins else "append_steps"
            await note(connection, author.change(new.agent_key, action, run_id, steps=numbers))
    return AppendedSteps("under_way" if fresh else run.status, step_count, new.redactions)


async def open_run(
    connection: AsyncConnection, keyring: Keyring, run_id: UUID, first: tuple[str, str, UUID | None], author: Author
) -> tuple[Words, UnderWay, bool]:
    """Returns a run, locked, with the user's ``Words``, and whether this call began the run.

    It begins a run that does not exist, and creates the agent's profile if it is missing.

    ``first`` has the agent, the redacted task and the retrieval, in case this call begins the run.

    Raises:
        MemoryOff: the user switched off writing for this agent.
        RunEnded: the run was retained.
        UnknownReference: the run is another agent's, or began with another agent's retrieval.
    """
    agent_key, task, retrieval_id = first
    words = await keyring.find_or_make(connection, author.user_sub)
    await open_for_writing(connection, author.user_sub, agent_key)
    sealed = {"key_id": words.key_id, "words": words.seal_run(run_id, task), "retrieval_id": retrieval_id}
    made = upsert(runs).values({"user_sub": author.user_sub, "agent_key": agent_key, "id": run_id, **sealed})
    made = made.on_conflict_do_nothing(index_elements=["user_sub", "id"])
    begins, run = False, None
    while run is None and not begins:  # whoever held the run's lock may have deleted the run: then it begins anew
        begins = await connection.scalar(made.returning(runs.c.id)) is not None
        run = await lock_run(connection, author.user_sub, run_id)
    if run is None:
        raise AssertionError("the run that was just begun is not visible: the transaction is not this user's")
    if begins:
        fast = await FastConnection.within(connection, author.user_sub, author.authorised_at)
        wrong = await wrong_reference(fast, agent_key, retrieval_id, None, None)
        if wrong is not None:
            raise UnknownReference(wrong)
    if run.agent_key != agent_key:
        raise UnknownReference("this is a run of another agent")
    if run.status == "retained":
        raise RunEnded("this run was retained: it takes no more steps")
    return words, run, begins


async def _add(connection: AsyncConnection, words: Words, run: UnderWay, steps: Sequence[PreparedStep]) -> None:
    """Inserts the steps and updates the run's counts.

    Raises:
        PayloadTooLarge: the run would have more than MOST_BYTES.
    """
    size = run.step_bytes + sum(step.size for step in steps)
    if size > MOST_BYTES:
        raise PayloadTooLarge(f"the run's steps have {size} bytes, over {MOST_BYTES}")
    rows = [
        {
            "user_sub": words.user_sub,
            "run_id": run.id,
            "number": step.number,
            "payload": words.seal("step", step.packed, run.id, step.number),
        }
        for step in steps
    ]
    await connection.execute(insert(run_steps), rows)
    now = {"status": "under_way", "ended_at": None, "case_id": None, "last_step_at": func.now()}
    counts = {"step_count": run.step_count + len(steps), "step_bytes": size}
    mine = runs.c.user_sub == words.user_sub, runs.c.id == run.id
    await connection.execute(update(runs).where(*mine).values({**now, **counts}))
