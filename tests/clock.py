"""A clock that a test sets."""

from dataclasses import dataclass


@dataclass
class Clock:
    """A clock, or a meter of the processor, that a test sets."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now
