"""Enumerations: the values that columns with a fixed choice may have, each list once.

The database's check constraints have the same values; a test compares them in a migrated database.
"""

from typing import Literal

CaseKind = Literal["task", "subtask", "tool"]
CaseStatus = Literal["pending", "ready", "merged", "pruned", "dead"]
RunOutcome = Literal["success", "failure", "partial", "aborted", "unknown"]
"""Outcome of a finished run; ``unknown``: the backend cannot say."""
FAILED: tuple[RunOutcome, ...] = ("failure", "aborted")
"""Outcomes of a run that reports its own failure."""
RunStatus = Literal["under_way", "retained", "aborted"]
"""Status of a run whose steps are reported one by one."""
FindingKind = Literal["read", "search", "answer", "write", "other"]
"""Subject of a finding: a file's text, a search, an answer, a change, or another."""
ToolKind = Literal["read", "search", "answer", "write", "shell", "other"]
"""Kind of a tool's calls; each command line of a shell has a kind of its own. ``other`` changes no file."""
FindingStatus = Literal[
    "known", "unknown", "similar", "failed", "changed", "in_doubt", "another_hash", "redacted", "earlier"
]
"""Answer to whether a run already knows the result of a call, with the reason for an answer that is not ``known``."""
RewardSource = Literal["heuristic", "user", "judge", "metric"]
"""Source of a reward; a heuristic is a guess by rule, the others are trusted."""


def is_trusted(source: str | None) -> bool:
    """Returns whether a reward of this source is trusted; a heuristic is a guess by rule."""
    return source is not None and source != "heuristic"


FAILED_BELOW = 0.5
"""Trusted reward below which a run counts as failed, whatever its outcome says."""


def has_failed(outcome: str, reward: float | None, source: str | None) -> bool:
    """Returns whether a run failed, by its reward if that is trusted, or else by its own outcome."""
    if reward is not None and is_trusted(source):
        return reward < FAILED_BELOW
    return outcome in FAILED


def went_well(outcome: str, reward: float | None, source: str | None) -> bool:
    """Returns whether a run, if not failed, reports a success, or has a reward of FAILED_BELOW or more."""
    return not has_failed(outcome, reward, source) and (outcome == "success" or (reward or 0) >= FAILED_BELOW)


Arm = Literal["default", "serving", "candidate"]
"""Policy that a decision followed: the untrained default, the promoted one, or the one on trial."""
PolicyStatus = Literal["candidate", "serving", "retired", "rolled_back", "rejected", "failed"]

ProcedureKind = Literal["script", "failure_lesson", "revision"]
"""A script to follow, a failure to avoid, or a revision of either."""
ProcedureOrigin = Literal["run", "rules", "llm"]
"""Author of a procedure's version: the backend that sent its run, the rules, or a language model."""
ProcedureStatus = Literal["active", "superseded", "retired", "rolled_back"]
AbstractionLevel = Literal["concrete", "abstract", "hybrid"]
"""Form of the values in a procedure: as they were in the run, as placeholders, or as placeholders with examples."""
ReflectionStatus = Literal["pending", "ready", "dead"]
"""Status of a reflection: pending until the worker has revised the procedures that the run used."""
ReviewVerdict = Literal["good", "incomplete", "wrong"]
"""Verdict of a person on a procedure: right and whole, right but not whole, or wrong."""

Rewrite = Literal["off", "llm"]
"""Rewriter of a profile's queries: none, or a language model."""
AnalystChoice = Literal["rules", "llm"]
"""Author of the analysis of failures in a profile's runs: rules, or a language model."""
Abstraction = Literal["off", "concrete", "abstract", "hybrid"]
"""Abstraction of a profile's scripts; ``off``: no scripts."""
SummaryChoice = Literal["rules", "llm"]
"""Author of a summary of a session's turns that no longer fit a context."""
LlmPurpose = Literal["rewrite", "analyse", "abstract", "revise", "summarise"]
"""Purpose of a call of a language model, by which a profile's tokens are counted."""

MasterKeyStatus = Literal["current", "retiring", "retired"]
"""Status of a master key: it wraps the keys of new users, still wraps keys of some users, or wraps none."""

SessionStatus = Literal["pending", "ready", "dead"]
"""Status of a session: pending while it has turns that the worker has not read."""
FactKind = Literal["goal", "preference", "event", "fact"]
"""Kind of a fact about a user."""
FactOrigin = Literal["turn", "run", "hand"]
"""Origin of a fact: a turn of a session, a turn of a run, or a person who wrote it."""
MemoryKind = Literal["turn", "fact", "knowledge"]
"""Kind of a memory: a turn of a session, a fact about the user, or knowledge of a domain."""
MemoryStatus = Literal["pending", "ready", "dead"]
"""Status of a memory: pending while it waits for its vector."""
InsertedStatus = Literal["pending", "dead"]
"""Status of a memory that was inserted by SQL: pending until it is stored, which takes it out of the table."""
Speaker = Literal["user", "assistant", "tool"]
"""Speaker of a fact: only the user's own words count as the user's."""
