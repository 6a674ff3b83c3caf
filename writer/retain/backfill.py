"""Backfill: retains past runs from a file of JSON lines, each line once, even if the file is read again."""

import asyncio
import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ValidationError
from sqlalchemy import bindparam, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from retrieval.database.database import Database
from retrieval.tables.cases import cases
from writer.author import Author
from writer.errors import IdempotencyConflict, RunEnded, SecretInName, UnknownReference
from writer.moment import Moment
from writer.privacy.keys import Keyring
from writer.privacy.seal import PayloadTooLarge
from writer.privacy.words import Words
from writer.retain.prepare import prepare
from writer.retain.retain import store
from writer.run import OF_PROCEDURES, FinishedRun
from writer.storable import parsed

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


_REFUSALS = LineRefused, IdempotencyConflict, PayloadTooLarge, RunEnded, SecretInName, UnknownReference


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
    missing.
    ``progress`` is called after each chunk of lines with their number.

    Raises:
        DatabaseUnavailable: the runs retained so far stay; reading the file again adds the others.
    """
    done, turns = Backfilled(), asyncio.Semaphore(CONCURRENCY)

    async def retain_line(text: bytes, key: str) -> bool:
        async with turns:
            run, created_at = parse(text, agent)
            prepared = replace(prepare(run), created_at=created_at)
            stored = await store(database, keyring, prepared, author, key)
        return stored.case_id == prepared.case_id  # else another backfill stored it meanwhile

    filled = ((number, text) for number, line in enumerate(lines, start=1) if (text := line.strip()))
    while chunk := list(islice(filled, CHUNK_LINES)):
        async with database.as_user(author.user_sub, author.authorised_at) as connection:
            words = await keyring.find_or_make(connection, author.user_sub)
            keys = await _new_keys(connection, words, agent, [text for _, text in chunk])
        retained = asyncio.gather(*(retain_line(text, key) for text, key in keys.items()), return_exceptions=True)
        ends = dict(zip(keys, await retained, strict=True))
        for number, text in chunk:
            end = ends.get(text)
            if isinstance(end, NoRun):
                done.passed_over += 1
            elif isinstance(end, _REFUSALS):
                done.refused.append((number, str(end)))
            elif isinstance(end, BaseException):
                raise end
            elif end:
                done.retained += 1
                ends[text] = False  # of equal lines the first one counts as new
            else:
                done.known += 1
        done.read += len(chunk)
        progress(len(chunk))
    return done


async def _new_keys(connection: AsyncConnection, words: Words, agent: str, texts: Iterable[bytes]) -> dict[bytes, str]:
    """Returns those of the lines that were not read before, each with its idempotency key.

    A line that an older version read, under a hash without the user's key, gets the key that it has now.
    """
    digests = {text: hashlib.sha256(agent.encode() + b"\n" + text).digest() for text in texts}
    keys = {text: f"backfill:{words.hash_of_call(digest).hex()}" for text, digest in digests.items()}
    before = {text: f"backfill:{digest.hex()}" for text, digest in digests.items()}
    key = cases.c.idempotency_key
    stored = select(key).where(cases.c.user_sub == words.user_sub, key.in_([*keys.values(), *before.values()]))
    known = set(await connection.scalars(stored))
    old = [text for text in keys if before[text] in known and keys[text] not in known]
    if old:
        mine = cases.c.user_sub == words.user_sub, key == bindparam("plain")
        rekeyed = update(cases).where(*mine).values(idempotency_key=bindparam("keyed"))
        await connection.execute(rekeyed, [{"plain": before[text], "keyed": keys[text]} for text in old])
    return {text: keys[text] for text in keys if known.isdisjoint({keys[text], before[text]})}


def parse(text: bytes, agent: str) -> tuple[FinishedRun, datetime | None]:
    """Returns the run in a line, a retain request or a case of an export, and its time; None: the time is unknown.

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
            if fields.get("unreadable"):
                raise LineRefused("the export could not decrypt this case")
            payload = fields.get("payload") or {}
            columns = {name: fields[name] for name in _COLUMNS if name in fields}
            fields = columns | {name: payload[name] for name in _SEALED if name in payload}
        times = _Times.model_validate({"created_at": fields.pop("created_at", None)})
        return FinishedRun.model_validate({**fields, "agent": agent}), times.created_at
    except ValidationError as error:
        # without the input: a report must not quote what a user wrote
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise LineRefused(f"{where}: {first['msg'].removeprefix('Value error, ')}") from error
    except TypeError as error:
        raise LineRefused("not a run: a field has the wrong type") from error


def _past(time: datetime) -> datetime:
    if time > datetime.now(UTC):
        raise ValueError("Input should be in the past")
    return time


class _Times(BaseModel):
    """Validates the time in a line: a moment of the past, or none."""

    created_at: Annotated[Moment, AfterValidator(_past)] | None


_COLUMNS = ("task", "plan", "tags", "outcome", "reward", "reward_source", "created_at")
_SEALED = ("tool_traces", "turns", "prompt_snapshot", "procedure", *OF_PROCEDURES, "files")
