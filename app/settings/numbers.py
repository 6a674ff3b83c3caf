"""Numbers that an operator sets together, in one setting: limits, timeouts, connections, the worker's pace.

Each is written as ``name=number`` with commas between them, as ``CASEBANK_TIMEOUTS_S=database=30,stop=5``; a name
that is left out keeps its default.
"""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

CENTURY_DAYS = 36_525
"""Longest time that a setting or an option accepts, in days: the range of dates is limited."""
LONGEST_S = 86_400 * CENTURY_DAYS
"""The same in seconds."""
DAY_S = 86_400
"""Longest wait that a timeout accepts, in seconds: Postgres takes at most 24 days."""
SWITCHES = {"off": False, "false": False, "on": True, "true": True}


class Numbers(BaseModel):
    """Numbers by name, read from the text of one setting."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        numbers = {}
        for part in filter(None, map(str.strip, value.split(","))):
            name, equals, number = map(str.strip, part.partition("="))
            if not equals or name not in cls.model_fields:
                raise ValueError(
                    f"must be like {next(iter(cls.model_fields))}=1, with names of {', '.join(cls.model_fields)}"
                )
            numbers[name] = number
        return numbers

    def __str__(self) -> str:
        """Returns the text that sets these numbers."""
        return ",".join(f"{name}={number}" for name, number in self)


class Limits(Numbers):
    """Limits of requests; 0 in one of them: no such limit. ``off``: no limits."""

    user_reads: int = Field(default=6_000, ge=0, le=1_000_000)
    """6,000 requests a minute: reads of one user, over all replicas."""
    user_writes: int = Field(default=3_000, ge=0, le=1_000_000)
    """3,000 requests a minute: writes of one user, over all replicas."""
    agent_reads: int = Field(default=4_000, ge=0, le=1_000_000)
    """4,000 requests a minute: reads of one agent of a user."""
    agent_writes: int = Field(default=2_000, ge=0, le=1_000_000)
    """2,000 requests a minute: writes of one agent of a user."""
    session_reads: int = Field(default=2_000, ge=0, le=1_000_000)
    """2,000 requests a minute: reads in one session."""
    session_writes: int = Field(default=1_000, ge=0, le=1_000_000)
    """1,000 requests a minute: writes in one session."""
    burst_s: float = Field(default=15.0, gt=0, le=3_600)
    """15 seconds: the share of a minute's requests that may come at once."""
    requests: int = Field(default=64, ge=0)
    """64 concurrent requests of one process; further ones queue."""
    user_requests: int = Field(default=4, ge=0)
    """4 concurrent requests of one user in one process; further ones queue."""
    pending: int = Field(default=50_000, ge=0)
    """50,000 cases in the queue, of all users."""
    user_pending: int = Field(default=5_000, ge=0)
    """5,000 cases in the queue, of one user."""

    @model_validator(mode="before")
    @classmethod
    def _from_switch(cls, value: object) -> object:
        on = SWITCHES.get(value.strip().lower()) if isinstance(value, str) else None
        if on is None:
            return value
        return {} if on else dict(cls.off())

    @classmethod
    def off(cls) -> Self:
        """Returns the limits under which every request is let in."""
        return cls(**{name: 0 for name, field in cls.model_fields.items() if field.annotation is int})


class Timeouts(Numbers):
    """Longest waits of a service, in seconds; each field says for what."""

    database: float = Field(default=10.0, gt=0, le=DAY_S)
    """10 s: one answer of the database."""
    embedder_request: float = Field(default=2.0, gt=0, le=DAY_S)
    """2 s: one request to the embedder."""
    embedder: float = Field(default=5.0, gt=0, le=DAY_S)
    """5 s: all requests for vectors, retries included; then the search uses keywords alone."""
    llm_request: float = Field(default=20.0, gt=0, le=DAY_S)
    """20 s: one request to the language model."""
    llm: float = Field(default=40.0, gt=0, le=DAY_S)
    """40 s: all requests for an answer, retries included; then rules explain the run. Keep it below ``lease_s``."""
    llm_rewrite: float = Field(default=1.5, gt=0, le=DAY_S)
    """1.5 s: a rewritten query; after it the query itself is searched for."""
    headers: float = Field(default=10.0, gt=0, le=DAY_S)
    """10 s: arrival of a request's headers."""
    body: float = Field(default=30.0, gt=0, le=DAY_S)
    """30 s: arrival of a body, its turn to be checked, and the reading of an answer, each."""
    body_check: float = Field(default=5.0, gt=0, le=DAY_S)
    """5 s of processor time: parsing, validation and redaction of one body; more is answered with 413."""
    turn: float = Field(default=10.0, gt=0, le=60)
    """10 s: a request's wait for its turn, or for its rate limit; then it is answered with 429."""
    stop: int = Field(default=10, ge=1, le=DAY_S)
    """10 s: end of the requests under way when the service stops."""


class Connections(Numbers):
    """Maximum numbers of open HTTP connections of one process; a further connection gets a 503 and is closed."""

    total: int = Field(default=1000, ge=1)
    """1,000 connections in all."""
    per_address: int = Field(default=200, ge=0)
    """200 connections from one address; 0: ``total``, for a service behind a proxy, which is one address."""


class WorkerPace(Numbers):
    """Pace of the workers."""

    poll_s: float = Field(default=0.2, gt=0, le=LONGEST_S)
    """0.2 seconds between two looks at an empty queue."""
    lease_s: float = Field(default=60.0, gt=0, le=LONGEST_S)
    """60 seconds for which a claimed case belongs to one worker; a language model's answer must fit in."""
    attempts: int = Field(default=8, ge=1)
    """8 failures after which a case is dead; an outage of the embedder is no failure."""
    backoff_s: float = Field(default=1.0, gt=0, le=LONGEST_S)
    """1 second after a case's first failure; doubles with each further one, up to five minutes."""
