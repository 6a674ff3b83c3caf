"""The values that a column of a fixed choice may have, each list once; the database's check constraints hold the same.

A test reads the constraints of a migrated database and compares.
"""

from typing import Literal

CaseKind = Literal["task", "subtask", "tool"]
CaseStatus = Literal["pending", "ready", "merged", "pruned", "dead"]
RunOutcome = Literal["success", "failure", "partial", "aborted", "unknown"]
"""How a finished run ended; ``unknown``: the backend cannot say."""
FAILED: tuple[RunOutcome, ...] = ("failure", "aborted")
"""The outcomes of a run that says itself that it did not do what it was asked."""
RunStatus = Literal["under_way", "retained", "aborted"]
"""Of a run whose steps are told one by one: what became of it so far."""
FindingKind = Literal["read", "search", "answer", "write", "other"]
"""What a finding of a run is about: what a file, a search or an answer said, what was changed, or anything else."""
ToolKind = Literal["read", "search", "answer", "write", "shell", "other"]
"""What calls of a tool are; of a shell each command line says it by itself. ``other`` changes no file."""
Knowledge = Literal[
    "known", "unknown", "similar", "failed", "changed", "in_doubt", "another_hash", "redacted", "earlier"
]
"""Whether a run knows already what a call would find out, or why it is not told as known."""
RewardSource = Literal["heuristic", "user", "judge", "metric"]
"""Who gave a reward; a heuristic is a guess by rule, the others are trusted."""


def is_trusted(source: str | None) -> bool:
    """Returns whether a reward of this source was given by somebody who knows, and not guessed by rule."""
    return source is not None and source != "heuristic"


FAILED_BELOW = 0.5
"""A trusted reward under which a run counts as failed, whatever its outcome says."""


def has_failed(outcome: str, reward: float | None, source: str | None) -> bool:
    """Returns whether the run missed its goal: by the reward of somebody who knows, or else by its own word."""
    if reward is not None and is_trusted(source):
        return reward < FAILED_BELOW
    return outcome == "failure"


Arm = Literal["default", "serving", "candidate"]
"""Whose order a decision followed: the untrained default's, the promoted policy's, or that of the one on trial."""
PolicyStatus = Literal["candidate", "serving", "retired", "rolled_back", "rejected", "failed"]

Fleet = Literal["off", "choice", "on"]
"""Who takes part in a fleet: nobody, the profiles that ask to, or all that do not ask not to."""

ProcedureKind = Literal["script", "failure_lesson", "revision"]
"""A script to follow, a failure to avoid, or a revision of either."""
ProcedureOrigin = Literal["run", "rules", "llm"]
"""Who wrote a version: the backend with its run, the rules, or a language model."""
ProcedureStatus = Literal["active", "superseded", "retired", "rolled_back"]
AbstractionLevel = Literal["concrete", "abstract", "hybrid"]
"""How far a procedure is abstracted: as it was done, with placeholders alone, or with an example for each."""
ReviewVerdict = Literal["good", "incomplete", "wrong"]
"""What a person found a procedure to be: right and whole, right but not whole, or wrong."""
QueryKind = Literal["find", "create", "change", "remove", "repair", "run", "question", "other"]
"""What kind of thing a task asks for."""

Rewrite = Literal["off", "rules", "llm"]
"""Who turns a query into a search."""
AnalystChoice = Literal["rules", "llm"]
"""Who explains the failures of a profile's runs."""
Abstraction = Literal["off", "concrete", "abstract", "hybrid"]
"""How abstract a profile wants its scripts; ``off``: it wants none."""
SummaryChoice = Literal["rules", "llm"]
"""Who tells of a session's turns that no longer fit."""
LlmPurpose = Literal["rewrite", "analyse", "abstract", "revise", "summarise"]
"""What a language model was asked for, in the account of a profile's tokens."""

MasterKeyStatus = Literal["current", "retiring", "retired"]
"""Of a master key: new users' keys are wrapped by it, some are still wrapped by it, or none is any more."""

SessionStatus = Literal["pending", "ready", "dead"]
"""Of a session: whether it has turns that the worker has still to read."""
FactKind = Literal["goal", "preference", "event", "fact"]
"""What a fact about a user is."""
FactCategory = Literal["money", "health", "learning", "work", "home", "travel", "people", "other"]
"""What a fact is about."""
FactOrigin = Literal["turn", "run", "hand"]
"""Where a fact comes from: a turn of a session, a turn of a run, or somebody who wrote it."""
MemoryKind = Literal["turn", "fact", "knowledge"]
"""What can be recalled: what was said in a session, what is known of the user, and knowledge of a domain."""
MemoryStatus = Literal["pending", "ready", "dead"]
"""Of a memory: whether it waits for its vector."""
Speaker = Literal["user", "assistant", "tool"]
"""Who said a fact: only what the user says is the user's word."""
