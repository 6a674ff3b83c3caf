"""The parts of the benchmark of learning, by name."""

from enum import StrEnum


class Part(StrEnum):
    """A part of the benchmark of learning; the longest come first, so that all end at about the same time."""

    SPEED = "speed"
    RUNS_RETAIL = "runs retail"
    RUNS_AIRLINE = "runs airline"
    REUSE = "reuse"
    CREDIT = "credit"
    POISON = "poison"
    GATE = "gate"
