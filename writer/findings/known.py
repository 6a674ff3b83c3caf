"""Looks up a planned call among the findings of a run; a call whose finding may be stale never counts as known."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from retrieval.database.database import Database
from retrieval.database.fast_path import FastConnection
from retrieval.errors import SealBroken
from retrieval.findings.statements import AGENTS, IN_EARLIER_RUNS, IN_THIS_RUN, AgentAsked, RunAsked
from retrieval.tables.kinds import FindingKind, FindingStatus
from writer.author import Author
from writer.findings.aspects import SHELL_FOLDER, by_hand
from writer.findings.calls import aspects_of
from writer.findings.record import hashes_of
from writer.privacy.keys import Keyring
from writer.privacy.words import Words


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call that an agent is about to make.

    Attributes:
        query: the tool's input, or only the path, pattern, question or command line from that input.
        content_hash: sha256 in hex of the file's current content; None if it is unknown.
        across_runs: true if earlier runs of the agent are searched as well.
        content_chars: maximum characters of the earlier output that are returned.
        agent_key: agent of a run that has no step yet; None: the user has only one agent.
    """

    tool: str
    query: object
    content_hash: str | None = None
    across_runs: bool = False
    content_chars: int = 20_000
    agent_key: str | None = None


@dataclass(frozen=True, slots=True)
class KnownFinding:
    """A decrypted finding, with the run and step in which it was made, and the case that the run became, if it did."""

    run_id: UUID
    step: int
    case_id: UUID | None
    kind: FindingKind
    success: bool
    created_at: datetime
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class KnownAnswer:
    """The result of looking up a planned call.

    Attributes:
        why: "known", or the reason why the agent must make the call.
        similarity: similarity of the planned query and the finding's, 0 to 1.
        age_steps: number of steps since the finding; None for a finding of another run.
        content: output of the earlier call, or its beginning; None: not known, or the output is no longer stored.
        cut: true if `content` is only the beginning of the output.
    """

    why: FindingStatus
    similarity: float = 0.0
    age_steps: int | None = None
    finding: KnownFinding | None = None
    content: str | None = None
    cut: bool = False

    @property
    def known(self) -> bool:
        """Returns whether the agent can use the earlier output and need not make the call."""
        return self.why == "known"


UNKNOWN = KnownAnswer("unknown")


async def is_known(
    database: Database, keyring: Keyring, author: Author, run_id: UUID, call: PlannedCall
) -> KnownAnswer:
    """Returns whether a finding of the run answers a planned call, and the finding.

    Earlier runs of the agent are searched as well if the run has no step yet, or if ``call.across_runs`` is true.

    Raises:
        PathTooLong: the path of the call is too long.
    """
    key = keyring.remembered(author.user_sub)
    if key is None:
        async with database.as_user(author.user_sub, author.authorised_at) as connection:
            key = await keyring.find(connection, author.user_sub)
    if key is None:  # nothing was ever stored for this user
        return UNKNOWN
    looking = _Looking(Words(author.user_sub, key), run_id, call)
    async with database.fast(author.user_sub, author.authorised_at) as fast:
        row = await looking.in_this_run(fast, {})
        if row is None:
            return await looking.before_the_first_step(fast)
        if row.key_id != key.key_id:  # the user began again since this process cached the key
            keyring.forget(author.user_sub)
        elif call.tool in (kinds := _kinds(row)):
            row = await looking.in_this_run(fast, kinds) or row
        answer = looking.answer(row)
        if answer.known or not call.across_runs:
            return answer
        earlier = await looking.in_earlier_runs(fast, row.agent_key, _kinds(row))
    return earlier if earlier is not None and (earlier.known or answer.finding is None) else answer


def _kinds(row: RunAsked | AgentAsked) -> Mapping[str, str]:
    kinds: Mapping[str, str] = json.loads(row.tool_kinds) if isinstance(row.tool_kinds, str) else row.tool_kinds
    return kinds


def parameters(words: Words, run_id: UUID, call: PlannedCall, kinds: Mapping[str, str]) -> dict[str, Any]:
    """Returns the parameters of the SQL statements that look up a planned call, without the user's name.

    Raises:
        PathTooLong: the path of the call is too long.
    """
    # the output of a call that has several aspects is never known; that of one that may act, if it was written by hand
    visible = [each for each in aspects_of(call.tool, call.query, kinds) if each.shows]
    aspect = by_hand(visible[0]) if len(visible) == 1 else None
    folder = words.number_of("place", SHELL_FOLDER)
    more = {"run_id": run_id, "with_content": call.content_chars > 0, "folder": folder}
    if aspect is None:
        nothing = dict.fromkeys(("query_hash", "path_hash", "content_hash", "first_line", "last_line"))
        return {**more, **nothing, "terms": [], "kind": "", "in_shell": False}
    return {
        **more,
        **hashes_of(words, aspect, call.content_hash or ""),
        "kind": aspect.kind,
        "first_line": aspect.lines[0] if aspect.lines else None,
        "last_line": aspect.lines[1] if aspect.lines else None,
        "in_shell": SHELL_FOLDER in aspect.place.marks,
    }


@dataclass(slots=True)
class _Looking:
    """The lookup of one planned call."""

    words: Words
    run_id: UUID
    call: PlannedCall

    def _parameters(self, kinds: Mapping[str, str]) -> dict[str, Any]:
        return parameters(self.words, self.run_id, self.call, kinds)

    async def in_this_run(self, connection: FastConnection, kinds: Mapping[str, str]) -> RunAsked | None:
        """Returns the run with the finding nearest to the planned call; None: the run has no step yet."""
        rows = await connection.all(IN_THIS_RUN, self._parameters(kinds))
        return rows[0] if rows else None

    async def before_the_first_step(self, connection: FastConnection) -> KnownAnswer:
        """Returns the answer for a run without steps, from earlier runs of the call's agent or of the only agent."""
        agents = await connection.all(AGENTS, {"agent_key": self.call.agent_key})
        if len(agents) != 1:
            return UNKNOWN
        return await self.in_earlier_runs(connection, agents[0].agent_key, _kinds(agents[0])) or UNKNOWN

    async def in_earlier_runs(
        self, connection: FastConnection, agent_key: str, kinds: Mapping[str, str]
    ) -> KnownAnswer | None:
        """Returns the answer from the agent's earlier runs; None: they have no like finding."""
        rows = await connection.all(IN_EARLIER_RUNS, {**self._parameters(kinds), "agent_key": agent_key})
        if not rows:
            return None
        row = rows[0]
        holds = row.same_content if row.kind == "read" else row.kind == "answer" and row.similarity == 1
        return self._opened(row, "known" if holds else "earlier" if row.similarity == 1 else "similar", None)

    def answer(self, row: RunAsked) -> KnownAnswer:
        """Returns the answer from the run's own finding."""
        if row.found_run_id is None:
            return UNKNOWN
        why: FindingStatus = "in_doubt" if row.in_doubt else "known"
        if self.call.content_hash is not None and row.kind == "read":
            why = "known" if row.same_content else "another_hash"
        if row.similarity < 1 or not row.success or row.changed:
            why = "similar" if row.similarity < 1 else "changed" if row.success else "failed"
        return self._opened(row, why, row.last_step - row.step)

    def _opened(self, row: RunAsked, why: FindingStatus, age: int | None) -> KnownAnswer:
        assert row.found_run_id is not None  # noqa: S101 - for the type checker
        try:
            payload = self.words.open("finding", row.payload, row.found_run_id, row.step, row.part)
        except SealBroken:
            return UNKNOWN
        if payload.get("redacted") and why in {"known", "another_hash"}:
            why = "redacted"  # the stored output is not the output of the call
        place = row.found_run_id, row.step, row.found_case_id
        finding = KnownFinding(*place, row.kind, row.success, row.created_at, payload)
        answer = KnownAnswer(why, round(row.similarity, 3), age, finding)
        if why != "known" or row.content is None or payload.get("by_hand"):  # the step of its number is another call
            return answer
        try:
            output = self.words.open("step", row.content, row.found_run_id, row.step)["output"]
        except SealBroken:
            return answer
        text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
        most = self.call.content_chars
        return replace(answer, content=text[:most], cut=len(text) > most)
