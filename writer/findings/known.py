"""Looks up a planned call among the findings of a run; a call whose finding may be stale never counts as known."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any
from uuid import UUID

from pydantic import AfterValidator, Field

from retrieval.database.database import Database
from retrieval.database.fast_path import FastConnection
from retrieval.errors import SealBroken
from retrieval.findings.statements import AGENTS, IN_EARLIER_RUNS, IN_THIS_RUN, AgentAsked, RunAsked
from retrieval.tables.kinds import FindingStatus
from writer.author import Author
from writer.findings.aspects import SHELL_FOLDER, by_hand
from writer.findings.calls import aspects_of
from writer.findings.record import hashes_of
from writer.privacy.keys import Keyring
from writer.privacy.redact import redact
from writer.privacy.words import Words
from writer.run import AgentKey, AsArguments, Strict, ToolName
from writer.storable import Payload

LONGEST_QUERY = 50_000


def _redacted(query: object) -> object:
    redacted = redact(query)[0]  # it is compared with stored calls, which are redacted too
    if len(json.dumps(redacted)) > LONGEST_QUERY:
        raise ValueError(f"must have at most {LONGEST_QUERY:,} characters as JSON")
    return redacted


class KnownIn(Strict):
    """A call that the agent is about to make."""

    tool: ToolName
    query: Annotated[Payload, AfterValidator(_redacted), AsArguments] = Field(
        description="path, pattern, question or command line of the call; or, more exact, the whole input of the tool"
    )
    hash: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = Field(
        default=None,
        description="sha256 (hex) of the UTF-8 text of the file, or of the requested lines, as they are now. An "
        "earlier reading counts only if its hash is the same, and then even if a later step may have changed the file",
    )
    across_runs: bool = Field(
        default=False,
        description="true: also look in earlier runs of the agent: for a file by its `hash`, for an answer by its "
        "question; results of a search may be out of date. Before the first step of the run they are always looked in",
    )
    agent: AgentKey | None = Field(
        default=None,
        description="agent of the run, for a question before its first step; null: the user's only agent",
    )
    content_chars: int = Field(
        default=20_000, ge=0, le=1_000_000, description="maximum length of `content` in characters; 0: no content"
    )


@dataclass(frozen=True, slots=True)
class KnownAnswer:
    """The result of looking up a planned call.

    Attributes:
        why: "known", or the reason why the agent must make the call.
        similarity: similarity of the planned query and the finding's, 0 to 1.
        age_steps: number of steps since the finding; None for a finding of another run.
        finding: the finding's texts, kind, success and time, with the run and step in which it was made, and the case
            that the run became, if it did.
        content: output of the earlier call, or its beginning; None: not known, or the output is no longer stored.
        cut: true if `content` is only the beginning of the output.
    """

    why: FindingStatus
    similarity: float = 0.0
    age_steps: int | None = None
    finding: Mapping[str, Any] | None = None
    content: str | None = None
    cut: bool = False

    @property
    def known(self) -> bool:
        """Returns whether the agent can use the earlier output and need not make the call."""
        return self.why == "known"


UNKNOWN = KnownAnswer("unknown")


async def is_known(database: Database, keyring: Keyring, author: Author, run_id: UUID, call: KnownIn) -> KnownAnswer:
    """Returns whether a finding of the run answers a planned call, and the finding.

    Earlier runs of the agent are searched as well if the run has no step yet, or if ``call.across_runs`` is true.

    Raises:
        PathTooLong: the path of the call is too long.
    """
    words = keyring.remembered(author.user_sub)
    if words is None:
        async with database.as_user(author.user_sub, author.authorised_at) as connection:
            words = await keyring.find(connection, author.user_sub)
    if words is None:  # nothing was ever stored for this user
        return UNKNOWN
    async with database.fast(author.user_sub, author.authorised_at) as fast:
        rows = await fast.all(IN_THIS_RUN, parameters(words, run_id, call, {}))
        if not rows:
            agents = await fast.all(AGENTS, {"agent_key": call.agent})
            return await _in_earlier_runs(fast, words, run_id, call, agents[0]) if len(agents) == 1 else UNKNOWN
        if rows[0].key_id != words.key_id:  # the user began again since this process cached the key
            keyring.forget(author.user_sub)
        elif call.tool in (kinds := _kinds(rows[0])):
            rows = await fast.all(IN_THIS_RUN, parameters(words, run_id, call, kinds)) or rows
        answer = _in_this_run(words, call, rows[0])
        if answer.known or not call.across_runs:
            return answer
        earlier = await _in_earlier_runs(fast, words, run_id, call, rows[0])
    return earlier if earlier.known or answer.finding is None else answer


def _kinds(row: RunAsked | AgentAsked) -> Mapping[str, str]:
    kinds: Mapping[str, str] = json.loads(row.tool_kinds) if isinstance(row.tool_kinds, str) else row.tool_kinds
    return kinds


def parameters(words: Words, run_id: UUID, call: KnownIn, kinds: Mapping[str, str]) -> dict[str, Any]:
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
        **hashes_of(words, aspect, call.hash or ""),
        "kind": aspect.kind,
        "first_line": aspect.lines[0] if aspect.lines else None,
        "last_line": aspect.lines[1] if aspect.lines else None,
        "in_shell": SHELL_FOLDER in aspect.place.marks,
    }


async def _in_earlier_runs(
    connection: FastConnection, words: Words, run_id: UUID, call: KnownIn, agent: RunAsked | AgentAsked
) -> KnownAnswer:
    wanted = {**parameters(words, run_id, call, _kinds(agent)), "agent_key": agent.agent_key}
    for row in await connection.all(IN_EARLIER_RUNS, wanted):
        holds = row.same_content if row.kind == "read" else row.kind == "answer" and row.similarity == 1
        return _opened(words, call, row, "known" if holds else "earlier" if row.similarity == 1 else "similar")
    return UNKNOWN


def _in_this_run(words: Words, call: KnownIn, row: RunAsked) -> KnownAnswer:
    if row.found_run_id is None:
        return UNKNOWN
    why: FindingStatus = "in_doubt" if row.in_doubt else "known"
    if call.hash is not None and row.kind == "read":
        why = "known" if row.same_content else "another_hash"
    if row.similarity < 1 or not row.success or row.changed:
        why = "similar" if row.similarity < 1 else "changed" if row.success else "failed"
    answer = _opened(words, call, row, why)
    return answer if answer.finding is None else replace(answer, age_steps=row.last_step - row.step)


def _opened(words: Words, call: KnownIn, row: RunAsked, why: FindingStatus) -> KnownAnswer:
    """Returns the answer with the finding decrypted, and with the earlier output if the call is known."""
    assert row.found_run_id is not None  # noqa: S101 - for the type checker
    try:
        payload = words.open("finding", row.payload, row.found_run_id, row.step, row.part)
    except SealBroken:
        return UNKNOWN
    if payload.get("redacted") and why in {"known", "another_hash"}:
        why = "redacted"  # the stored output is not the output of the call
    place = {"run_id": row.found_run_id, "step": row.step, "case_id": row.found_case_id}
    finding = {**payload, **place, "kind": row.kind, "success": row.success, "created_at": row.created_at}
    answer = KnownAnswer(why, round(row.similarity, 3), finding=finding)
    if why != "known" or row.content is None or payload.get("by_hand"):  # the step of its number is another call
        return answer
    try:
        output = words.open("step", row.content, row.found_run_id, row.step)["output"]
    except SealBroken:
        return answer
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
    return replace(answer, content=text[: call.content_chars], cut=len(text) > call.content_chars)
