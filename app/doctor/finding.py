"""The finding: the result of one check of the doctor."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check; ``ok`` is None if the check does not apply."""

    name: str
    ok: bool | None
    detail: str
    advice: str = ""


def in_brief(error: Exception) -> str:
    """Returns an error's type and the first line of its message, at most 200 characters."""
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]
