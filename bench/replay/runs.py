"""Runs in the order of time, the input of replay."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of a run with its result."""

    tool: str
    input: object
    output: object
    ok: bool


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run.

    Attributes:
        task: the text of the task, the only query.
        calls: tool calls in order, with those that failed.
        succeeded: the outcome.
        day: number of the day, from 0.
        kind: true kind of the task, for reports; orders must not read it.
        recorded: name of the recorded run or text, which is the same under every seed; "": made up for its seed.
    """

    task: str
    calls: tuple[Call, ...]
    succeeded: bool
    day: int
    kind: str
    recorded: str = ""


@dataclass(frozen=True, slots=True)
class Stream:
    """Runs of one world in the order of time.

    Attributes:
        runs: empty if the stream is skipped.
        skipped: reason for which this machine cannot build the stream; "" if it can.
        change: index of the first run under changed rules; None if the rules stay.
        fixed: True if the stream is the same under every seed.
    """

    name: str
    runs: tuple[Run, ...] = field(repr=False)
    skipped: str = ""
    change: int | None = None
    fixed: bool = False
