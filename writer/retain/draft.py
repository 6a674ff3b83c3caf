"""A draft: a run made ready to be stored, before anybody asks the database: redacted, measured, hashed and packed."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast
from uuid import UUID

import uuid_utils.compat as uuids
from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from retrieval.tables.cases import MAX_SEARCH_TEXT_CHARS
from retrieval.tables.kinds import RewardSource, RunStatus
from retrieval.telemetry import origin, stage
from retrieval.text import folded
from writer.analysis.call_status import failed_by_status
from writer.analysis.run_counts import counted_by_status
from writer.messages import tool_traces
from writer.privacy.names import nameable
from writer.privacy.redact import Redaction, redact
from writer.privacy.seal import Packed, pack
from writer.retain.heuristic import heuristic_reward
from writer.retain.plan import CallMade, plan_of
from writer.run import FinishedRun, ToolTrace, Turn


@dataclass(frozen=True, slots=True)
class Draft:
    """A run made ready: redacted, measured and hashed, but for the user's key and the idempotency key.

    Pydantic makes it of a run's JSON, so that a process of its own can do that for a large one.
    """

    case_id: UUID
    columns: dict[str, object]
    payload: Packed
    redactions: list[Redaction]
    retrieval_id: UUID | None
    created_at: datetime | None = None
    """When the run was; None: now."""
    run_id: UUID | None = None
    """The run under way that ends with it."""
    session: str | None = None
    """The session that it was a part of."""
    ends_as: RunStatus = "retained"
    """What becomes of that one."""
    redacted: "Redacted | None" = None
    """What to make the draft of again, once the steps or turns of those are read; None where it has its own."""

    @property
    def has_turns(self) -> bool:
        """Whether the run brought its own turns, and takes none of its session."""
        return self.redacted is None or bool(self.redacted.clean["turns"])

    @property
    def reward_source(self) -> RewardSource | None:
        """Who gave the reward; None where there is none."""
        return cast("RewardSource | None", self.columns["reward_source"])

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Returns the schema of a run, whose outcome is the draft; a draft passes as it is."""
        run = handler.generate_schema(FinishedRun)
        return core_schema.no_info_wrap_validator_function(_drafted, run)


def _drafted(given: object, validated: Callable[[object], FinishedRun]) -> Draft:
    return given if isinstance(given, Draft) else draft_of(validated(given))


def draft_of(run: FinishedRun) -> Draft:
    """Returns the run made ready, which takes the longer the more there is to redact."""
    with stage("retain.redact"):
        return _draft(run)


@dataclass(frozen=True, slots=True)
class Redacted:
    """A run, and what of it may be stored: its JSON without secrets."""

    run: FinishedRun
    clean: Mapping[str, Any]
    redactions: list[Redaction]
    request_hash: bytes


def completed(draft: Draft, traces: Sequence[Mapping[str, Any]], turns: Sequence[Mapping[str, Any]]) -> Draft:
    """Returns the draft with these tool traces and turns, which are redacted, where it has none of its own.

    Without a run under way the calls in the turns are its tool traces.
    """
    if draft.redacted is None:
        return draft
    clean = dict(draft.redacted.clean)
    clean["turns"] = clean["turns"] or list(turns)
    if draft.run_id is None and not clean["tool_traces"]:
        calls = tool_traces([Turn.model_validate(turn) for turn in clean["turns"]])
        traces = [ToolTrace.model_validate(call).model_dump(mode="json") for call in calls]
    clean["tool_traces"] = clean["tool_traces"] or list(traces)
    made = _made(replace(draft.redacted, clean=clean))
    columns = {**made.columns, "idempotency_key": draft.columns["idempotency_key"]}
    return replace(draft, columns=columns, payload=made.payload)


def _draft(run: FinishedRun) -> Draft:
    raw = run.model_dump(mode="json")
    _drop_unsaid(raw)
    # not orjson: it writes no integer over 64 bits, which a tool's output may well have
    request_hash = hashlib.sha256(json.dumps(raw, sort_keys=True).encode()).digest()
    redacted = Redacted(run, *redact(raw), request_hash)
    draft = _made(redacted)
    whole = (run.run_id is None or run.tool_traces) and (run.session_id is None or run.turns)
    return draft if whole else replace(draft, redacted=redacted)


def _made(redacted: Redacted) -> Draft:
    run, clean = redacted.run, redacted.clean
    traces, plan = clean["tool_traces"], clean["plan"]
    tools = list(dict.fromkeys(trace["tool"] for trace in traces))
    # as far as the statuses tell: the worker looks at the outputs, and corrects these counts and the guessed reward
    counts = counted_by_status(traces, plan)
    plan = plan or plan_of(  # of calls that say something: else runs of one tool all had the same plan, and merged
        [CallMade(tool=t["tool"], input=t["input"], failed=failed_by_status(t["status"])) for t in traces if t["input"]]
    )
    guess = heuristic_reward(run.outcome, unresolved=counts.unresolved)
    columns = {
        "agent_key": nameable(run.agent),
        "kind": run.kind,
        "parent_case_id": run.parent_case_id,
        "status": "pending",
        "task": clean["task"],
        "plan": plan,
        "tools": tools,
        "effects": counts.effects,
        "tags": clean["tags"],
        "outcome": run.outcome,
        "reward": guess if run.reward is None else run.reward,
        "reward_source": _reward_source(run, guess),
        "step_count": len(traces) or len(run.plan),
        "error_count": counts.error_count,
        "session_id": None,  # until it is looked up by its name
        "used_case_ids": run.used_case_ids,
        "used_procedure_ids": run.used_procedure_ids,
        # not what was read off the calls: their arguments are sealed, and the index is not
        "search_text": search_text(clean["task"], clean["plan"], tools, clean["tags"]),
        "idempotency_key": None,  # until somebody gives one
        "request_hash": redacted.request_hash,
    }
    payload = {name: clean[name] for name in ("prompt_snapshot", "tool_traces", "turns", "procedure")}
    payload["origin"] = origin()  # for the worker's log and trace
    return Draft(
        uuids.uuid7(),
        columns,
        pack(payload),
        redacted.redactions,
        run.retrieval_id,
        run_id=run.run_id,
        session=None if run.session_id is None else nameable(run.session_id, "a session's"),
    )


def _drop_unsaid(raw: dict[str, Any]) -> None:
    """Takes out the fields that later versions added, where they are not used.

    So a repeat of an older retain is the same request, with the same hash.
    """
    for name in ("used_procedure_ids", "run_id", "session_id"):
        if raw[name] is None:
            del raw[name]
    for turn in raw["turns"]:
        for name in ("name", "tool_calls", "tool_call_id", "refusal"):
            if turn[name] is None:
                del turn[name]


def _reward_source(run: FinishedRun, guess: float | None) -> RewardSource | None:
    if run.reward is not None and run.reward_source is not None:
        return run.reward_source
    return None if run.reward is None and guess is None else "heuristic"  # unsaid: the run's own word


def search_text(task: str, plan: Sequence[str], tools: Sequence[str], tags: Sequence[str]) -> str:
    """Returns what keywords find a case by."""
    return "\n".join([task, *plan, *tools, *tags])[:MAX_SEARCH_TEXT_CHARS]


def message_hash(task: str, plan: list[str]) -> bytes:
    """Returns the hash under which equal runs meet: of task and plan, whatever their case and white space."""
    normal = "\n".join(folded(text) for text in (task, *plan))
    return hashlib.sha256(normal.encode()).digest()
