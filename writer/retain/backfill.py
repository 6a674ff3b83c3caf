"""Backfill: retains past runs from a file of JSON lines, each line once, even if the file is read again."""

import asyncio
import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain, islice
from typing import Annotated, NamedTuple

from pydantic import AfterValidator, BaseModel, ValidationError
from pydantic_core import PydanticCustomError
from sqlalchemy import Select, bindparam, select, update

from retrieval.database.database import Database
from retrieval.tables.cases import cases
from writer.author import Author
from writer.errors import IdempotencyConflict, RunEnded, SecretInName, UnknownReference
from writer.finite import parsed
from writer.moment import Moment
from writer.privacy.keys import Keyring
from writer.privacy.seal import PayloadTooLarge
from writer.privacy.words import Words
from writer.retain.prepare import prepare
from writer.retain.retain import store
from writer.run import OF_PROCEDURES, FinishedRun

CHUNK_LINES = 64
"""Number of lines that are looked up and retained together."""
CONCURRENCY = 8
"""Maximum number of runs that are retained at the same time."""


@dataclass(slots=True)
class Backfilled:
    """The result of a backfill: the numbers of lines read, retained, already known, passed over and refused.

    Blank lines do not count.
    """

    read: int = 0
    retained: int = 0
    known: int = 0
    passed_over: int = 0
    """Number of lines that are rows of an export other than cases."""
    refused: list[tuple[int, str]] = field(default_factory=list)
    """Lines that hold no valid run, in order: the 1-based line number, and the reason."""


class LineRefused(ValueError):
    """A line of a file of past runs holds no valid run; the message gives the reason without quoting the line."""


class NoRun(Exception):
    """A line of a file of past runs is a row of an export other than a case, such as a session or a fact."""


class OldRun(NamedTuple):
    """A past run, and its time; None: the time is unknown, and the run gets the time of the backfill."""

    run: FinishedRun
    created_at: datetime | None


@dataclass(frozen=True, slots=True)
class _FileLine:
    """A line of a file: its number, its text, and the sha256 of the agent and the text."""

    number: int
    text: bytes
    digest: bytes

    @classmethod
    def of(cls, agent: str, number: int, text: bytes) -> "_FileLine":
        """Returns a line that is read for an agent."""
        return cls(number, text, hashlib.sha256(agent.encode() + b"\n" + text).digest())


@dataclass(frozen=True, slots=True)
class _Bank:
    """The database, the author and the agent for whom runs are retained."""

    database: Database
    keyring: Keyring
    author: Author
    agent: str


async def backfill(  # noqa: PLR0913 - retain's own parameters, and the callback for progress
    database: Database,
    keyring: Keyring,
    lines: Iterable[bytes],
    author: Author,
    agent: str,
    *,
    progress: Callable[[int], object] = lambda _count: None,
) -> Backfilled:
    """Retains the run in each line for ``agent``, whatever agent the line names; counts and reports bad lines.

    A line is a retain request, with the time of the run in ``created_at`` if it is known, or a case as `export` writes
    it. A keyed hash of agent and line is the idempotency key, so reading a file again adds only the runs that are
    missing. A line that an older version read gets this key.
    ``progress`` is called after each chunk of lines with their number.

    Raises:
        DatabaseUnavailable: the runs retained so far stay; reading the file again adds the others.
    """
    done = Backfilled()
    bank = _Bank(database, keyring, author, agent)
    filled = ((number, text) for number, line in enumerate(lines, start=1) if (text := line.strip()))
    while chunk := [_FileLine.of(agent, *each) for each in islice(filled, CHUNK_LINES)]:
        async with database.as_user(author.user_sub, author.authorised_at) as connection:
            words = Words(author.user_sub, await keyring.find_or_make(connection, author.user_sub))
            # the key, and the one of older versions, a hash without the user's key
            keys = {
                line.digest: (f"backfill:{words.hash_of_call(line.digest).hex()}", f"backfill:{line.digest.hex()}")
                for line in chunk
            }
            statement = known_keys(author.user_sub, [*chain.from_iterable(keys.values())])
            known = set((await connection.scalars(statement)).all())
            pairs = [pair for pair in keys.values() if pair[1] in known and pair[0] not in known]
            if pairs:
                mine = cases.c.user_sub == author.user_sub, cases.c.idempotency_key == bindparam("before")
                keyed = update(cases).where(*mine).values(idempotency_key=bindparam("keyed"))
                await connection.execute(keyed, [{"keyed": key, "before": plain} for key, plain in pairs])
        # of equal lines the first one counts as new
        fresh = {line.digest: line for line in reversed(chunk) if known.isdisjoint(keys[line.digest])}
        turns = asyncio.Semaphore(CONCURRENCY)
        retains = (_retain(bank, line.text, keys[line.digest][0], turns) for line in fresh.values())
        ends = dict(zip(fresh, await asyncio.gather(*retains, return_exceptions=True), strict=True))
        for line in chunk:
            reason = ends.get(line.digest)
            if isinstance(reason, NoRun):
                done.passed_over += 1
            elif isinstance(reason, BaseException):
                raise reason
            elif isinstance(reason, str):
                done.refused.append((line.number, reason))
            elif reason and fresh[line.digest] is line:
                done.retained += 1
            else:
                done.known += 1
        done.read += len(chunk)
        progress(len(chunk))
    return done


async def _retain(bank: _Bank, text: bytes, key: str, turns: asyncio.Semaphore) -> bool | str:
    """Retains the line's run; returns whether it was not known by then, or the reason why the run was refused.

    Raises:
        NoRun: the line is a row of an export other than a case.
    """
    async with turns:
        try:
            old = parse(text, bank.agent)
            prepared = replace(prepare(old.run), created_at=old.created_at)
            stored = await store(bank.database, bank.keyring, prepared, bank.author, key)
        except (LineRefused, IdempotencyConflict, PayloadTooLarge, RunEnded, SecretInName, UnknownReference) as error:
            return str(error)
    return stored.case_id == prepared.case_id


def known_keys(user_sub: str, keys: list[str]) -> Select[str | None]:
    """Returns a statement that selects those of the user's idempotency keys under which a case is stored already."""
    return select(cases.c.idempotency_key).where(cases.c.user_sub == user_sub, cases.c.idempotency_key.in_(keys))


def _past(time: datetime) -> datetime:
    if time > datetime.now(UTC):
        raise PydanticCustomError("not_past", "Input should be in the past")
    return time


def parse(text: bytes, agent: str) -> OldRun:
    """Returns the run in a line: a retain request, or a case of an export.

    An exported case loses its links to a retrieval, used cases and a parent run, because the import gives new ids.

    Raises:
        LineRefused: the line is no JSON, has a number that is not finite, or holds no run that retain would take.
        NoRun: the line is a row of an export other than a case.
    """
    try:
        fields = parsed(text)  # not by orjson, which makes a float of an integer over 64 bits
    except (ValueError, RecursionError) as error:
        raise LineRefused(f"not JSON: {error}") from error
    try:
        if not isinstance(fields, dict):
            raise LineRefused("not a JSON object")
        if "type" in fields:  # a row of an export
            if fields["type"] != cases.name:
                raise NoRun
            payload = fields.get("payload") or {}
            columns = {name: fields[name] for name in _COLUMNS if name in fields}
            fields = columns | {name: payload[name] for name in _SEALED if name in payload}
        times = _Times.model_validate({"created_at": fields.pop("created_at", None)})
        return OldRun(FinishedRun.model_validate({**fields, "agent": agent}), times.created_at)
    except ValidationError as error:
        # without the input: a report must not quote what a user wrote
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise LineRefused(f"{where}: {first['msg'].removeprefix('Value error, ')}") from error
    except TypeError as error:
        raise LineRefused("not a run: a field has the wrong type") from error


class _Times(BaseModel):
    """Validates the time in a line: a moment of the past, or none."""

    created_at: Annotated[Moment, AfterValidator(_past)] | None


_COLUMNS = ("task", "plan", "tags", "outcome", "reward", "reward_source", "created_at")
_SEALED = ("tool_traces", "turns", "prompt_snapshot", "procedure", *OF_PROCEDURES, "files")
