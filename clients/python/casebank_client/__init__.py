"""Client of casebank: retrieve before the agent acts, and retain after.

from casebank_client import Casebank

with Casebank("http://127.0.0.1:8700", token) as memory, memory.run("db-operator", task) as run:
    advice = run.tool("sql", {"query": "…"}, "…")
    run.success()
"""

from casebank_client.answers import (
    Advice,
    Case,
    Cases,
    Fact,
    Facts,
    Feedback,
    Fix,
    Knowledge,
    KnowledgePage,
    MemoryFound,
    Part,
    ProcedureTold,
    Recalled,
    Redaction,
    Retained,
    Retrieved,
    Session,
    Slot,
    SummaryItem,
    Threshold,
    Turn,
    TurnsAdded,
    WholeCase,
)
from casebank_client.client import AsyncCasebank, Casebank
from casebank_client.errors import CasebankRefused, CasebankUnreachable, ClientError
from casebank_client.outbox import DiskBuffer
from casebank_client.run import AsyncRun, Run
from casebank_client.wire import Patience, Request

__all__ = [
    "Advice",
    "AsyncCasebank",
    "AsyncRun",
    "Case",
    "Casebank",
    "CasebankRefused",
    "CasebankUnreachable",
    "Cases",
    "ClientError",
    "DiskBuffer",
    "Fact",
    "Facts",
    "Feedback",
    "Fix",
    "Knowledge",
    "KnowledgePage",
    "MemoryFound",
    "Part",
    "Patience",
    "ProcedureTold",
    "Recalled",
    "Redaction",
    "Request",
    "Retained",
    "Retrieved",
    "Run",
    "Session",
    "Slot",
    "SummaryItem",
    "Threshold",
    "Turn",
    "TurnsAdded",
    "WholeCase",
]
