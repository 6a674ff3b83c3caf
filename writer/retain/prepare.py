"""Prepares a finished run for storage, without the database: redacts it, computes its case's columns, and packs it."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import uuid_utils.compat as uuids

from policy.channels import searchable
from retrieval.tables.cases import MAX_SEARCH_TEXT_CHARS
from retrieval.tables.kinds import RewardSource, RunStatus
from retrieval.telemetry import origin, stage
from retrieval.text import as_repeated
from writer.analysis.run_counts import counted_by_status
from writer.blocks import unread
from writer.messages import Turn, tool_traces
from writer.privacy.names import nameable
from writer.privacy.redact import Redaction, redact
from writer.privacy.seal import Packed, pack
from writer.retain.heuristic import heuristic_reward
from writer.retain.plan import plan_by_status
from writer.run import OF_PROCEDURES, FinishedRun, ToolTrace


@dataclass(frozen=True, slots=True)
class RedactedRun:
    """A finished run, redacted, whose case's columns are not computed yet.

    Attributes:
        run: the run as the backend sent it; only fields that hold no text are read from it.
        clean: the run as JSON, redacted.
    """

    run: FinishedRun
    clean: Mapping[str, Any]

    @property
    def lacks_steps(self) -> bool:
        """Returns whether the run has no tool traces because its steps were sent before, one by one."""
        return self.run.run_id is not None and not self.clean["tool_traces"]

    @property
    def lacks_turns(self) -> bool:
        """Returns whether the run has no turns because they were sent before as turns of a session."""
        return self.run.session_id is not None and not self.clean["turns"]

    def joined(self, steps: Sequence[Mapping[str, Any]], turns: Sequence[Mapping[str, Any]]) -> "RedactedRun":
        """Returns the run with the steps and turns that it lacks.

        A run that lacks only turns, and has no tool traces, gets its tool traces from the calls in the turns.
        """
        clean = dict(self.clean)
        if self.lacks_turns:
            clean["turns"] = list(turns)
        if self.lacks_steps:
            clean["tool_traces"] = list(steps)
        elif not clean["tool_traces"]:
            calls = tool_traces([Turn.model_validate(turn) for turn in clean["turns"]])
            clean["tool_traces"] = [ToolTrace.model_validate(call).model_dump(mode="json") for call in calls]
        return replace(self, clean=clean)


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """The columns of a case that depend on its run's steps and turns, and the case's payload, not encrypted yet."""

    columns: Mapping[str, Any]
    payload: Packed


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """A finished run, ready to be stored under the user's key.

    Attributes:
        reward_source: the source that the backend names for its reward; None: it gave no reward, or no source.
        request_hash: sha256 of the request; only a keyed hash of it is stored.
        retrieval_id: the retrieval that the run began with; None: the backend named none.
        run_id: the run under way that this run ends; None: its steps were not sent before.
        content: the case's columns and payload; or the redacted run, if its steps or its session are still to be read
            from the database.
        created_at: the time of the run; None: the time at which it is stored.
        ends_as: status that the run with ``run_id`` gets.
        warnings: parts of the run that are stored but not read, such as images, or that are not stored.
    """

    case_id: UUID
    agent_key: str
    reward_source: RewardSource | None
    request_hash: bytes
    redactions: list[Redaction]
    retrieval_id: UUID | None
    run_id: UUID | None
    session: str | None
    content: MeasuredRun | RedactedRun
    created_at: datetime | None = None
    ends_as: RunStatus = "retained"
    warnings: list[str] = field(default_factory=list)

    @property
    def measured(self) -> MeasuredRun:
        """Returns the case's columns and payload; computes them if ``content`` is a ``RedactedRun``."""
        return self.content if isinstance(self.content, MeasuredRun) else measure(self.content)


def prepare(run: FinishedRun) -> PreparedRun:
    """Returns the run ready for ``store``; its columns are computed later if it names steps or a session.

    Call it before a connection is taken, because redacting a long run takes a while.

    Raises:
        SecretInName: the name of the agent or of the session looks like a secret.
    """
    with stage("retain.redact"):
        raw = run.model_dump(mode="json")
        # without unused fields that later versions added: a repeat of an older request keeps its hash
        for name in ("used_procedure_ids", "run_id", "session_id", *OF_PROCEDURES):
            if raw[name] is None:
                del raw[name]
        if not raw["files"]:
            del raw["files"]
        for turn in raw["turns"]:
            for name in ("name", "tool_calls", "tool_call_id", "refusal", "is_error"):
                if turn[name] is None:
                    del turn[name]
        # not orjson: it writes no integer over 64 bits, which a tool's output may well have
        request_hash = hashlib.sha256(json.dumps(raw, sort_keys=True).encode()).digest()
        clean, redactions = redact(raw)
        steps = [step if isinstance(step, dict) else {"step": step} for step in clean["plan"]]
        clean["plan"] = [step["step"] for step in steps]
        clean["plan_references"] = [step.get("reference_case_ids", []) for step in steps]
        redacted = RedactedRun(run, clean)
        return PreparedRun(
            case_id=uuids.uuid7(),
            agent_key=nameable(run.agent),
            reward_source=None if run.reward is None else run.reward_source,
            request_hash=request_hash,
            redactions=redactions,
            retrieval_id=run.retrieval_id,
            run_id=run.run_id,
            session=None if run.session_id is None else nameable(run.session_id, "a session's"),
            content=redacted if redacted.lacks_steps or run.session_id is not None else measure(redacted),
            warnings=unread([turn.content for turn in run.turns]),
        )


def measure(redacted: RedactedRun, *, in_session: bool = False) -> MeasuredRun:
    """Returns the columns of a run's case, such as its counts, plan and guessed reward, and its packed payload.

    ``in_session`` says that the run belongs to a stored session, whose turns are read for facts in place of the run's.
    """
    run, clean = redacted.run, redacted.clean
    traces, plan = clean["tool_traces"], clean["plan"]
    tools = list(dict.fromkeys(trace["tool"] for trace in traces))
    # by the calls' statuses alone: the worker reads the outputs, and corrects these counts and the guessed reward
    counts = counted_by_status(traces, plan)
    plan = plan or plan_by_status(traces)
    reward, source = run.reward, run.reward_source or "heuristic"  # a reward without a source is the run's own claim
    if reward is None:
        reward = heuristic_reward(run.outcome, unresolved=counts.unresolved)
        source = "heuristic"
    columns = {
        "kind": run.kind,
        "parent_case_id": run.parent_case_id,
        "status": "pending",
        "task": clean["task"],
        "plan": plan,
        "tools": tools,
        "effects": counts.effects,
        "tags": clean["tags"],
        "outcome": run.outcome,
        "reward": reward,
        "reward_source": None if reward is None else source,
        "step_count": len(traces) or len(run.plan),
        "error_count": counts.error_count,
        "used_case_ids": run.used_case_ids,
        "used_procedure_ids": run.used_procedure_ids,
        # clean["plan"], not the plan made from the calls: their arguments are sealed, and the index is not
        "search_text": search_text(clean["task"], clean["plan"], tools, clean["tags"]),
    }
    payload = {name: clean[name] for name in ("prompt_snapshot", "tool_traces", "turns", "procedure")}
    payload |= {name: clean[name] for name in (*OF_PROCEDURES, "files") if clean.get(name)}
    if any(clean["plan_references"]):
        payload["plan_references"] = clean["plan_references"]
    if in_session:
        payload["in_session"] = True  # the case's session may be deleted before the worker has learned from the run
    payload["origin"] = origin()  # for the worker's log and trace
    return MeasuredRun(columns, pack(payload))


def search_text(task: str, plan: Sequence[str], tools: Sequence[str], tags: Sequence[str]) -> str:
    """Returns the text by which keyword search finds a case."""
    return searchable("\n".join([task, *plan, *tools, *tags]))[:MAX_SEARCH_TEXT_CHARS]


def message_hash(task: str, plan: list[str]) -> bytes:
    """Returns the hash of a task and a plan, by which repeats of a run are found; see ``as_repeated``."""
    normal = json.dumps([*map(as_repeated, (task, *plan))])  # which keeps the boundaries of the texts
    return hashlib.sha256(normal.encode()).digest()
