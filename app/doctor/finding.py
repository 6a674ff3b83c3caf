"""What a check finds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found; ``ok`` is None where there was nothing to judge."""

    name: str
    ok: bool | None
    detail: str
    advice: str = ""


def said(error: Exception) -> str:
    """Returns an error's type and the first line of its message, at most 200 characters."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]
