"""Stores the failures of a finished run beside its case."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.sealed import ERROR, FIX, MOVES, SIGN, TOOL
from retrieval.tables.failures import failures
from writer.analysis.fixes import RunFailure
from writer.privacy.words import Words


async def store_failures(connection: AsyncConnection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Inserts failures, given as ``failure_rows`` returns them; failures that are stored already stay as they are."""
    if rows:
        await connection.execute(insert(failures).on_conflict_do_nothing(), rows)


def failure_rows(words: Words, agent_key: str, case_id: UUID, run: Sequence[RunFailure]) -> list[dict[str, Any]]:
    """Returns a row of the table of failures for each failure of a run."""
    return [
        {
            "user_sub": words.user_sub,
            "case_id": case_id,
            "place": place,
            "agent_key": agent_key,
            **numbers_of(words, failure),
            "calls": failure.calls,
            "words": words.seal(
                "failure",
                {
                    "tool": failure.sign.tool,
                    "error": failure.error,
                    "fix": None if failure.fix is None else asdict(failure.fix),
                },
                case_id,
                place,
            ),
        }
        for place, failure in enumerate(run, start=1)
    ]


def numbers_of(words: Words, failure: RunFailure) -> dict[str, Any]:
    """Returns the keyed hashes of a failure, by column of the table of failures."""
    sign, terms = failure.sign, [] if failure.fix is None else failure.fix.terms
    return {
        "tool": words.numbers(TOOL, [sign.tool])[0],
        "sign": words.numbers(SIGN, [sign.line])[0],
        "error": words.numbers(ERROR, sign.error),
        "call": words.numbers(MOVES, sign.call),
        "fix": words.numbers(FIX, terms),
        "fix_id": fix_number(words, terms) if terms else None,
    }


def fix_number(words: Words, terms: Sequence[str]) -> int:
    """Returns the keyed hash that identifies a fix, given the terms of its changes in any order."""
    return words.numbers(FIX, ["\n".join(sorted(terms))])[0]
