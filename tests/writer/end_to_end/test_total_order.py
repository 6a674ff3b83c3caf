"""Every statement built for several rows has a total order, so that what a LIMIT cuts off never depends on chance."""

import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from importlib import import_module
from inspect import getmembers, isfunction, signature
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from sqlalchemy import Select
from sqlalchemy.dialects import postgresql

from retrieval.tables.cases import cases
from retrieval.tables.runs import runs
from tests.lessons import RECORD
from writer import privacy, procedures, rights, training, upkeep
from writer.procedures.ports import ProcedureDraft
from writer.profiles import Profile
from writer.run import ProcedureData

ONE_ROW: set[str] = set()
KEYS: Mapping[str, set[str]] = {
    "beside_parents": {"procedures.id"},
    "case_and_repeats": {"cases.id"},
    "by_day": {"llm_usage.day", "llm_usage.purpose"},
    "crowded_out": {"ranked.rank"},
    "entries": {"decisions.id"},
    "expired": {"cases.id"},
    "in_other_form": {"cases.id"},
    "in_use": {"master_keys.fingerprint"},
    "expired_procedures": {"procedures.id"},
    "expired_checkpoints": {"checkpoints.id"},
    "learned_from": {"procedures.id"},
    "is_gone": ONE_ROW,
    "left": ONE_ROW,
    "live": {"policies.version"},
    "merged": {"cases.id"},
    "silent": {"runs.id"},
    "known_versions": {"procedures.id", "procedures.version"},
    "nearest_versions": {"procedures.id", "procedures.version"},
    "old_decisions": {"decisions.id"},
    "older": {"runs.id"},
    "long_silent": {"runs.id"},
    "page": {"cases.id"},
    "receipts": {"erasures.user_sub", "erasures.erased_at"},
    "rewarded": ONE_ROW,
    "size": ONE_ROW,
    "too_many_procedures": {"anon_1.rank"},
    "unembedded": {"cases.id"},
    "unembedded_triggers": {"procedures.id", "procedures.version"},
    "used_versions": {"procedures.id"},
    "versions": {"policies.version"},
}
"""What tells the rows of each statement apart, within one user and agent."""

NOW = datetime.now(UTC)
ARGUMENTS = {
    "user_sub": "ada",
    "owner": ("ada", "agent"),
    "time": runs.c.ended_at,
    "moment": NOW,
    "ttl": "session_ttl_days",
    "user_digest": None,
    "profile": Profile("ada", "agent", NOW),
    "column": cases.c.source,
    "sealed": True,
    "agent_key": "agent",
    "procedure_ids": [uuid4()],
    "case_id": uuid4(),
    "case_ids": [uuid4()],
    "draft": ProcedureDraft("script", "rules", ProcedureData(**RECORD), "To add a column"),
    "vector": np.ones(4, np.float32),
    "model": "some space",
    "blank": [],
    "table": cases,
    "after": None,
    "above": uuid4(),
    "session_id": uuid4(),
    "now": NOW,
    "before": NOW,
    "silent_for": NOW - NOW,
    "erased_at": NOW,
    "tokens_per_day": 1,
    "days": 1,
    "size": 1,
    "kept": 1,
    "most": 1,
}


def builders() -> Iterator[Callable[..., Select[Any]]]:
    """The public functions that return a SELECT."""
    for package in (privacy, procedures, rights, training, upkeep):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for name, function in getmembers(import_module(module.name), isfunction):
                returned = signature(function).return_annotation
                if function.__module__ == module.name and not name.startswith("_") and returned is Select:
                    yield function


def ordered_by(statement: Select[Any]) -> str:
    """The outermost ORDER BY, without what stands in brackets."""
    text = str(statement.compile(dialect=postgresql.dialect()))
    while text != (text := re.sub(r"\([^()]*\)", "", text)):
        pass
    found = re.search(r"ORDER BY(.*?)(?:\bLIMIT\b|\bFOR\b|$)", text, re.DOTALL)
    return found.group(1) if found else ""


@pytest.mark.parametrize("build", list(builders()), ids=lambda build: f"{build.__module__}.{build.__name__}")
def test_a_statement_for_several_rows_has_a_total_order(build: Callable[..., Select[Any]]):
    statement = build(**{name: ARGUMENTS[name] for name in signature(build).parameters})
    order = ordered_by(statement)
    missing = {key for key in KEYS[build.__name__] if not re.search(rf"\b{re.escape(key)}\b", order)}
    assert not missing, f"ORDER BY{order or ' nothing'}"
